// Message rates; the calling thread is the kernel that posts the messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "rdma/setup.hpp"
#include "weftio/weftio.hpp"

namespace weftio::bench {

/// How the queue pairs are kept busy.
struct stream_shape {
    double seconds = 0.3;
    std::uint32_t in_flight = 512;     ///< most messages in flight of a queue pair; at most what its ring holds
    std::uint32_t burst = 32;          ///< messages of one commit
    std::uint32_t positions = 1;       ///< that a message takes
    const rdma_setup* turns = nullptr; ///< not null: the calling thread runs its engines once after each commit
};

inline constexpr std::uint64_t patience_ns = 10'000'000'000;

/// Retransmissions of all streams so far. A rate with many retransmissions is not meaningful.
struct repeats {
    std::uint64_t packets = 0, of = 0, timeouts = 0;
};
repeats& all_repeats();

/// @throws weftio::error errc::device_error unless `status` is WEFTIO_DEV_OK
void require(std::int32_t status, const char* what);

inline double seconds_since(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Waits until `room` entries of the queue are free. Runs the engines meanwhile if `shape.turns` is set.
inline void wait_for_room(const stream_shape& shape, weftio_dev_rdma* rdma, std::uint32_t room)
{
    constexpr std::uint64_t at_once_ns = 1;
    while (shape.turns && weftio_dev_rdma_wait_room(rdma, room, at_once_ns) == WEFTIO_DEV_TIMEOUT)
        shape.turns->run_turns();
    require(weftio_dev_rdma_wait_room(rdma, room, patience_ns), "the wait for space");
}

/// Posts bursts to each queue in turn until the time is over, and waits until all are done. Returns messages per
/// second.
/// @param enqueue  called with (handle, position, number): writes the entry of a message and returns a status
template <class Enqueue>
double messages_a_second(std::span<const rdma_queue* const> queues, const stream_shape& shape, Enqueue&& enqueue)
{
    std::uint64_t number = 0;
    weftio_u32 position = 0, mask = 0;
    const auto begin = std::chrono::steady_clock::now();
    do
        for (const rdma_queue* queue : queues) {
            weftio_dev_rdma* const rdma = queue->handle();
            weftio_dev_rdma_get_info(rdma, &position, &mask);
            wait_for_room(shape, rdma, mask + 1 - (shape.in_flight - shape.burst) * shape.positions);
            for (std::uint32_t each = 0; each < shape.burst; ++each)
                require(enqueue(rdma, position + each * shape.positions, number++), "an entry");
            require(weftio_dev_rdma_commit_weak(rdma, shape.burst * shape.positions), "a commit");
            if (shape.turns)
                shape.turns->run_turns();
        }
    while (seconds_since(begin) < shape.seconds);
    for (const rdma_queue* queue : queues) {
        weftio_dev_rdma_get_info(queue->handle(), &position, &mask);
        // The last positions of a longer entry become free with a later one.
        wait_for_room(shape, queue->handle(), shape.positions == 1 ? mask + 1 : mask - 1);
        require(weftio_dev_rdma_commit_wait(queue->handle(), patience_ns), "the wait for the last entries");
    }
    const double rate = static_cast<double>(number) / seconds_since(begin);
    for (const rdma_queue* queue : queues) {
        const rdma_counters counted = queue->counters();
        all_repeats().packets += counted.repeated;
        all_repeats().of += counted.packets;
        all_repeats().timeouts += counted.local_ack_timeout_err;
    }
    return rate;
}

} // namespace weftio::bench
