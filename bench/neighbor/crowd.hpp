// The queue pairs that stand beside the good one, by what they do. pairs.cpp measures them.
#pragma once

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "neighbor/pairs.hpp"
#include "weftio/weftio.hpp"

namespace weftio::bench {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::uint32_t ring_entries = 64;

inline void require(std::int32_t status, const char* what)
{
    if (status != WEFTIO_DEV_OK)
        throw error(errc::device_error, fmt::format("neighbor_bench: {}: status {}", what, status));
}

/// A port for queue pairs, whose engine the kernel runs in inline mode.
inline port open_for(const pair_options& wanted, unsigned engines)
{
    return port::open("loopback", {.mode = wanted.inline_worker ? engine_mode::inline_worker : engine_mode::thread,
                                   .idle = idle_policy::busy,
                                   .engines = engines,
                                   .core = wanted.engine_core});
}

/// A port with one RDMA device, and memory that both queue pairs of a connection may use.
struct ground {
    static constexpr const char* address = "10.9.8.1";

    /// @param gpu_spec  device of payload that the CPU cannot access, or empty
    ground(const port& port, const device& device, bool inline_worker, const std::string& gpu_spec = {})
        : at(port), cpu(device), gpu(gpu_spec.empty() ? std::nullopt : std::optional(device::open(gpu_spec))),
          here(at, {.address = address, .application_turns = inline_worker}),
          memory(device.allocate(16 * mib, memory_kind::cpu_device)),
          region(at, memory,
                 {.rights = access::local_write | access::remote_write | access::remote_read | access::bind}),
          remote(remote_region::of(region).on_device())
    {}

    port at;
    const device& cpu;
    std::optional<device> gpu;
    rdma_device here;
    weftio::memory memory;
    memory_region region;
    weftio_dev_remote remote;
};

/// Two queue pairs that are connected to each other.
struct connected {
    connected(ground& on, const rdma_queue_options& options)
        : near(on.here, on.cpu, options), end(on.here, on.cpu, options)
    {
        near.connect(end.address());
        end.connect(near.address());
    }
    std::uint32_t room() { return weftio_dev_send_room(&near.handle()->queue.ring, ring_entries); }

    rdma_queue near, end;
};

inline constexpr rdma_queue_options small_rings{
    .entries = ring_entries, .receive_entries = ring_entries, .timeout = 20};

/// The other queue pairs of the port. The calling thread is the kernel of all of them.
class crowd {
 public:
    crowd() = default;
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;
    virtual ~crowd() = default;
    /// Posts new work for the pairs that have finished work.
    virtual void go_on() {}
    /// The work of another thread for these pairs; called repeatedly.
    virtual void step() { benchmark::DoNotOptimize(++steps_); }
    /// Whether work() tells all that they do.
    virtual bool counts_work() const { return false; }
    /// What they have done so far: bytes of long messages, packet by packet, or changes of windows.
    virtual std::uint64_t work() const { return 0; }
    /// The good pair's sender, if its messages take their receives from where those of the crowd do. nullptr: the good
    /// pair has nothing in common with the crowd.
    virtual weftio_dev_rdma* good_sender() { return nullptr; }
    /// Whether all that was posted is done.
    virtual bool is_done() const { return true; }
    /// Receives that are posted, have not completed and are not there any more; nullopt: it posts none.
    /// @pre is_done(), no other thread calls step(), and step() has nothing left to do
    virtual std::optional<std::uint64_t> receives_lost() const { return std::nullopt; }

 private:
    std::uint32_t steps_ = 0;
};

/// Pairs that do nothing.
class idle_pairs : public crowd {
 public:
    idle_pairs(ground& on, unsigned count)
    {
        for (unsigned each = 0; each < count; ++each)
            pairs_.emplace_back(on, small_rings);
    }

 protected:
    std::deque<connected> pairs_;
};

/// A kind of crowd, and its name in rows.
struct crowd_kind {
    const char* name;
    std::function<std::unique_ptr<crowd>(ground&, unsigned)> make;
    bool two_engines = false; ///< of the port
    bool on_gpu = false;      ///< their payload is in memory of ground::gpu
    bool has_good = false;    ///< see crowd::good_sender(); a crowd of 0 is the good pair alone
};

template <class Crowd, class... Arguments>
crowd_kind kind_of(const char* name, Arguments... arguments)
{
    return {name, [=](ground& on, unsigned count) { return std::make_unique<Crowd>(on, count, arguments...); }};
}

// The kinds, by what they do.
std::vector<crowd_kind> busy_crowds();      ///< they copy, or bind windows, without pause
std::vector<crowd_kind> failing_crowds();   ///< they wait for what does not come, or fail
std::vector<crowd_kind> receiving_crowds(); ///< they send messages, for which the receiver posts entries

} // namespace weftio::bench
