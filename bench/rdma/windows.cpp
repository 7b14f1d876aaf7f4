// Memory windows: how fast they change, and what an access through one costs.
#include <algorithm>
#include <vector>

#include "rdma/measure.hpp"
#include "rdma/stream.hpp"
#include "rdma/windows.hpp"

namespace weftio::bench {

namespace {

constexpr std::size_t lent_bytes = std::size_t{1} << 20;
constexpr std::uint32_t lent_rights = WEFTIO_DEV_RDMA_REMOTE_WRITE | WEFTIO_DEV_RDMA_REMOTE_READ;

/// WRITEs of 1 MiB of a queue pair of its own, so that the engine is busy. The calling thread must call go_on() often.
class busy_engine {
 public:
    /// @param setup  not null; nullptr: nothing keeps it busy
    explicit busy_engine(const rdma_setup* setup) : setup_(setup)
    {
        if (setup_)
            pairs_.push_back(setup_->pair(64));
    }
    ~busy_engine()
    {
        for (const rdma_pair& pair : pairs_)
            weftio_dev_rdma_commit_wait(pair.ends[0].handle(), patience_ns);
    }
    /// Sees to it that as many are in flight as last for some milliseconds.
    void go_on()
    {
        constexpr std::uint32_t entries = 64, in_flight = 32;
        for (const rdma_pair& pair : pairs_) {
            weftio_dev_rdma* const rdma = pair.ends[0].handle();
            std::uint32_t more = weftio_dev_send_room(&rdma->queue.ring, entries);
            more = more > entries - in_flight ? more - (entries - in_flight) : 0;
            for (std::uint32_t each = 0; each != more; ++each)
                require(weftio_dev_rdma_write(rdma, setup_->memory(1).remote, each * lent_bytes % (8 * lent_bytes),
                                              setup_->memory(0).buffer, 0, lent_bytes, 0),
                        "a long write");
            if (more != 0)
                require(weftio_dev_rdma_commit(rdma), "a commit of long writes");
        }
    }

 private:
    const rdma_setup* setup_;
    std::vector<rdma_pair> pairs_; ///< one or none
};

} // namespace

bound_window::bound_window(const rdma_setup& setup, const rdma_queue& by)
    : window_(setup.device_at(1), window_type::type_2), to_(setup.memory(1).remote)
{
    const std::uint32_t next = weftio_dev_rdma_next_rkey(window_.rkey());
    require(weftio_dev_rdma_enqueue(by.handle(),
                                    weftio_dev_rdma_bind_request(window_.rkey(), next, WEFTIO_DEV_WINDOW_TYPE_2,
                                                                 setup.memory(1).buffer, 0, setup.memory_bytes,
                                                                 lent_rights),
                                    0),
            "a bind");
    require(weftio_dev_rdma_commit_wait(by.handle(), patience_ns), "the wait for a bind");
    to_.rkey_be = weftio_swap32(next);
}

double bound_and_invalidated(const rdma_setup& setup, bool beside_writes, double seconds)
{
    constexpr std::uint32_t bind_positions = 3, invalidate_positions = 2;
    constexpr std::size_t count = 64;
    const rdma_pair pair = setup.pair();
    const rdma_queue* const queue = &pair.ends[0];
    std::vector<memory_window> windows;
    std::vector<std::uint32_t> first_keys;
    for (std::size_t each = 0; each != count; ++each)
        first_keys.push_back(windows.emplace_back(setup.device_at(0), window_type::type_2).rkey());
    busy_engine others(beside_writes ? &setup : nullptr);
    const weftio_dev_buf memory = setup.memory(0).buffer;
    const auto lend = [&](weftio_dev_rdma* rdma, std::uint32_t position, std::uint64_t number) {
        if (number % 32 == 0)
            others.go_on();
        const auto round = static_cast<std::uint32_t>(number / count);
        const std::uint32_t first = first_keys[number % count], index = first & ~0xffu;
        const std::uint32_t now = index | ((first + round) & 0xffu), next = weftio_dev_rdma_next_rkey(now);
        const std::int32_t status =
            weftio_dev_rdma_enqueue_weak(rdma,
                                         weftio_dev_rdma_bind_request(now, next, WEFTIO_DEV_WINDOW_TYPE_2, memory,
                                                                      number % 8 * lent_bytes, lent_bytes, lent_rights),
                                         position, 0);
        return status != WEFTIO_DEV_OK ? status
                                       : weftio_dev_rdma_enqueue_weak(rdma, weftio_dev_rdma_invalidate_request(next),
                                                                      position + bind_positions, 0);
    };
    return messages_a_second(
        {&queue, 1},
        {.seconds = seconds, .in_flight = 160, .burst = 32, .positions = bind_positions + invalidate_positions}, lend);
}

double registered_and_destroyed(const rdma_setup& setup, bool beside_writes, double seconds)
{
    const memory lent = setup.cpu.allocate(lent_bytes, memory_kind::cpu_device);
    busy_engine others(beside_writes ? &setup : nullptr);
    std::uint64_t number = 0;
    const auto begin = std::chrono::steady_clock::now();
    do {
        others.go_on();
        const memory_region region(setup.at_end(0), lent, {.rights = access::local_write | access::remote_write});
        ++number;
    } while (seconds_since(begin) < seconds);
    return static_cast<double>(number) / seconds_since(begin);
}

} // namespace weftio::bench
