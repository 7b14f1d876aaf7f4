#include "rdma/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "machine.hpp"
#include "nic/backend.hpp"
#include "rdma/launch.hpp"
#include "rdma/rdma.kernel.h"
#include "rdma/stream.hpp"
#include "rdma/windows.hpp"

WEFTIO_DEFINE_KERNEL(rdma_bench_take, "rdma/rdma.kernel.h");
WEFTIO_DEFINE_KERNEL(rdma_bench_take_frames, "rdma/rdma.kernel.h");

namespace weftio::bench {

namespace {

constexpr std::size_t hot_bytes = std::size_t{1} << 20; ///< memory that messages use in turn; small enough for a cache
constexpr std::size_t bytes_in_flight = std::size_t{4} << 20;
constexpr std::uint32_t headers_bytes = 14 + 20 + 8 + 12 + 4; ///< headers from Ethernet to BTH, and the ICRC

/// Offset of message `number` in its memory.
std::uint64_t offset_of(std::uint64_t number, std::size_t bytes)
{
    return number % std::max<std::size_t>(hot_bytes / bytes, 1) * bytes;
}

stream_shape shape_for(const rdma_setup& setup, std::size_t bytes, double seconds)
{
    const auto in_flight = static_cast<std::uint32_t>(std::clamp<std::size_t>(bytes_in_flight / bytes, 2, 512));
    return {
        .seconds = seconds, .in_flight = in_flight, .burst = std::min(in_flight / 2, 32u), .turns = setup.with_turns()};
}

void end(running_kernel& kernel)
{
    kernel.stop();
    if (!kernel.wait_for(patience))
        throw error(errc::device_error, "rdma_bench: the far kernel did not end within 30 s");
}

double small_writes_of(const rdma_setup& setup, const std::vector<const rdma_queue*>& queues, const stream_shape& shape,
                       const weftio_dev_remote& to)
{
    const weftio_dev_buf from = setup.memory(0).buffer;
    return messages_a_second(queues, shape, [=](weftio_dev_rdma* rdma, std::uint32_t position, std::uint64_t number) {
        const std::uint64_t at = offset_of(number, 8) % 4096;
        return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_write_inline_request(to, at, from.address, 8),
                                            position, WEFTIO_DEV_SEND_NONE);
    });
}

/// Bytes per second of one queue. `request` makes its entries: weftio_dev_rdma_write_request or _read_request.
double moved_bytes(const rdma_setup& setup, std::size_t bytes, double seconds,
                   decltype(weftio_dev_rdma_write_request)& request, named_by key)
{
    const rdma_pair pair = setup.pair();
    const rdma_queue* const queue = &pair.ends[0];
    std::optional<bound_window> window;
    if (key == named_by::window)
        window.emplace(setup, pair.ends[1]);
    const weftio_dev_remote there = window ? window->remote() : setup.memory(1).remote;
    const weftio_dev_buf here = setup.memory(0).buffer;
    const auto move = [=, &request](weftio_dev_rdma* rdma, std::uint32_t position, std::uint64_t number) {
        const std::uint64_t at = offset_of(number, bytes);
        return weftio_dev_rdma_enqueue_weak(rdma, request(there, at, here, at, bytes), position, WEFTIO_DEV_SEND_NONE);
    };
    return static_cast<double>(bytes) * messages_a_second({&queue, 1}, shape_for(setup, bytes, seconds), move);
}

std::vector<rdma_pair> pairs_of(const rdma_setup& setup, std::uint32_t count)
{
    std::vector<rdma_pair> pairs;
    for (std::uint32_t each = 0; each < count; ++each)
        pairs.push_back(setup.pair(64));
    return pairs;
}

} // namespace

repeats& all_repeats()
{
    static repeats all;
    return all;
}

void require(std::int32_t status, const char* what)
{
    if (status != WEFTIO_DEV_OK)
        throw error(errc::device_error, fmt::format("rdma_bench: {} returned status {}", what, status));
}

double small_writes(const rdma_setup& setup, std::uint32_t queues, double seconds)
{
    if (queues == 1)
        return small_writes_beside(setup, 0, seconds);
    const std::vector<rdma_pair> pairs = pairs_of(setup, queues);
    std::vector<const rdma_queue*> ends;
    for (const rdma_pair& pair : pairs)
        ends.push_back(&pair.ends[0]);
    return small_writes_of(setup, ends, {.seconds = seconds, .in_flight = 64, .turns = setup.with_turns()},
                           setup.memory(1).remote);
}

double small_writes_beside(const rdma_setup& setup, std::uint32_t idle, double seconds)
{
    const std::vector<rdma_pair> others = pairs_of(setup, idle);
    const rdma_pair pair = setup.pair();
    const weftio_dev_remote to = setup.memory(1).remote;
    // Until the engine no longer polls the idle ones.
    small_writes_of(setup, {&pair.ends[0]}, {.seconds = 0.02, .turns = setup.with_turns()}, to);
    return small_writes_of(setup, {&pair.ends[0]}, {.seconds = seconds, .turns = setup.with_turns()}, to);
}

double small_writes_through_window(const rdma_setup& setup, double seconds)
{
    const rdma_pair pair = setup.pair();
    const bound_window window(setup, pair.ends[1]);
    return small_writes_of(setup, {&pair.ends[0]}, {.seconds = seconds, .turns = setup.with_turns()}, window.remote());
}

double written_bytes(const rdma_setup& setup, std::size_t bytes, double seconds, named_by key)
{
    return moved_bytes(setup, bytes, seconds, weftio_dev_rdma_write_request, key);
}

double read_bytes(const rdma_setup& setup, std::size_t bytes, double seconds)
{
    return moved_bytes(setup, bytes, seconds, weftio_dev_rdma_read_request, named_by::region);
}

double copied_bytes(const rdma_setup& setup, std::size_t bytes, double seconds)
{
    auto* const to = static_cast<std::byte*>(setup.memory(1).memory.cpu_address());
    const auto* const from = static_cast<const std::byte*>(setup.memory(0).memory.cpu_address());
    std::uint64_t number = 0;
    const auto begin = std::chrono::steady_clock::now();
    do {
        const std::uint64_t at = offset_of(number++, bytes);
        std::memcpy(to + at, from + at, bytes);
        asm volatile("" ::: "memory"); // keeps the compiler from removing a copy
    } while (seconds_since(begin) < seconds);
    return static_cast<double>(number * bytes) / seconds_since(begin);
}

double sent_messages(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t bytes, double seconds)
{
    const rdma_pair pair = setup.pair(1024, 1024);
    const rdma_queue* const queue = &pair.ends[0];
    const buf_arr room(setup.memory(1).region, setup.cpu, {.count = 256, .buffer_bytes = bytes});
    require(rdma_bench_post(pair.ends[1].receives().handle(), room.handle(), 1024), "a receive");
    running_kernel taking =
        launch_on(cores.peer_kernel, setup.cpu, rdma_bench_take_kernel, pair.ends[1].receives(), room);
    const weftio_dev_buf from = setup.memory(0).buffer;
    const auto send = [=](weftio_dev_rdma* rdma, std::uint32_t position, std::uint64_t number) {
        return weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_send_request(from, offset_of(number, bytes), bytes),
                                            position, WEFTIO_DEV_SEND_NONE);
    };
    const double rate = messages_a_second({&queue, 1}, {.seconds = seconds}, send);
    end(taking);
    return rate;
}

double fetched_and_added(const rdma_setup& setup, double seconds)
{
    const rdma_pair pair = setup.pair();
    const rdma_queue* const queue = &pair.ends[0];
    const weftio_dev_remote word = setup.memory(1).remote;
    const weftio_dev_buf before = setup.memory(0).buffer;
    const auto add = [=](weftio_dev_rdma* rdma, std::uint32_t position, std::uint64_t number) {
        return weftio_dev_rdma_enqueue_weak(rdma,
                                            weftio_dev_rdma_fetch_add_request(word, 0, 1, before, offset_of(number, 8)),
                                            position, WEFTIO_DEV_SEND_NONE);
    };
    return messages_a_second({&queue, 1}, {.seconds = seconds}, add);
}

double frames(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t payload_bytes, double seconds)
{
    constexpr std::uint32_t entries = 1024, burst = 32;
    const std::uint32_t bytes = payload_bytes + headers_bytes;
    eth_txq out(setup.at_end(0), setup.cpu, {.entries = entries});
    eth_rxq in(setup.at_end(1), setup.cpu,
               {.packets = entries, .max_packet_bytes = (bytes + 63) / 64 * 64, .verify_checksums = false});
    const flow everything(setup.at_end(1), flow_match{}, flow_action::to(in));
    const buf_arr made(setup.at_end(0), setup.cpu, {.count = 256, .buffer_bytes = bytes});
    for (std::uint32_t each = 0; each < 256; ++each)
        std::ranges::copy(setup.at_end(1).mac(), static_cast<std::uint8_t*>(made.cpu_address(each)));
    running_kernel taking = launch_on(cores.peer_kernel, setup.cpu, rdma_bench_take_frames_kernel, in);
    weftio_dev_eth_txq* const txq = out.handle();
    weftio_u32 position = 0, mask = 0;
    const auto begin = std::chrono::steady_clock::now();
    do {
        weftio_dev_eth_txq_get_info(txq, &position, &mask);
        require(weftio_dev_eth_txq_wait_room(txq, entries / 2, patience_ns), "the wait for space for frames");
        for (std::uint32_t each = 0; each < burst; ++each)
            require(weftio_dev_eth_txq_send_enqueue_weak(txq,
                                                         weftio_dev_buf_get(made.handle(), (position + each) % 256),
                                                         bytes, position + each, WEFTIO_DEV_SEND_NONE),
                    "a frame");
        require(weftio_dev_eth_txq_commit_weak(txq, burst), "a commit of frames");
        weftio_dev_eth_txq_push(txq);
    } while (seconds_since(begin) < seconds);
    const double rate = static_cast<double>(in.counters().delivered) / seconds_since(begin);
    require(weftio_dev_eth_txq_wait_room(txq, entries, patience_ns), "the wait for the last frames");
    end(taking);
    return rate;
}

double bytes_of_a_queue_pair(const rdma_setup& setup, std::uint32_t count)
{
    constexpr double rings = 64 * WEFTIO_WQE_BLOCK_BYTES + 64 * (WEFTIO_WQE_SEGMENT_BYTES + sizeof(weftio_cqe));
    const rdma_pair first = setup.pair(64); // so that memory that the port shares among all queue pairs exists already
    const std::uint64_t before = resident_bytes();
    const std::vector<rdma_pair> pairs = pairs_of(setup, count / 2);
    return static_cast<double>(resident_bytes() - before) / count - rings;
}

double exchanges(const rdma_setup& setup, unsigned count, double seconds)
{
    constexpr std::uint32_t entries = 64;
    std::vector<rdma_pair> pairs;
    for (unsigned each = 0; each != count; ++each)
        pairs.push_back(setup.pair(entries));
    const weftio_dev_buf from = setup.memory(0).buffer;
    const weftio_dev_remote to = setup.memory(1).remote;
    nic::backend& engine = detail::internals::backend(setup.at_end(0));
    std::uint64_t made = 0;
    const auto begin = std::chrono::steady_clock::now();
    do {
        for (unsigned each = 0; each != count; ++each) {
            weftio_dev_rdma* const rdma = pairs[each].ends[0].handle();
            require(weftio_dev_rdma_write(rdma, to, std::size_t{each} * 128, from, 0, 64, 0), "a piece");
            require(weftio_dev_rdma_write(rdma, to, std::size_t{each} * 128 + 64, from, 64, 8, 0), "its number");
            // No push: in inline mode it would run the engine.
            weftio_dev_send_queue_commit_strong(&rdma->queue);
            weftio_dev_send_doorbell(&rdma->queue.ring);
        }
        for (const rdma_pair& pair : pairs)
            while (weftio_dev_send_room(&pair.ends[0].handle()->queue.ring, entries) != entries)
                engine.turn();
        ++made;
    } while (seconds_since(begin) < seconds);
    return static_cast<double>(made) / seconds_since(begin);
}

} // namespace weftio::bench
