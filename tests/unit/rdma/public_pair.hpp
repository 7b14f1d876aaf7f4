// Two connected rdma_queues: of two ports on a wire, or of one port.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "two_ends.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

/// The ports of two ends, and the mode of their engines. Two ports have engine threads, because a wait in inline mode
/// runs the engine of its own port only.
struct place_of_ends {
    bool one_port;
    engine_mode mode;
};
inline std::string name_of(const place_of_ends& place)
{
    return std::string(place.one_port ? "OnePort" : "TwoPorts") +
           (place.mode == engine_mode::thread ? "Threads" : "Inline");
}
inline void PrintTo(const place_of_ends& place, std::ostream* out)
{
    *out << name_of(place);
}
inline const std::array<place_of_ends, 3> places_of_ends{
    {{true, engine_mode::inline_worker}, {true, engine_mode::thread}, {false, engine_mode::thread}}};

class public_pair {
 public:
    static constexpr std::size_t memory_bytes = 65536;

    explicit public_pair(place_of_ends place, rdma_queue_options options = {.entries = 64, .receive_entries = 64},
                         const std::string& device_spec = "cpu")
        : where(device::open(device_spec)), options_(options), ports(place.mode)
    {
        options_.timeout = 18; // retries for 8.6 s: an engine may be delayed by a busy machine or a sanitizer's report
        for (unsigned end = 0; end < 2; ++end) {
            port& at = ports.get(place.one_port ? 0 : end);
            devices[end].emplace(at, rdma_device_options{.address = end == 0 ? "10.0.0.1" : "10.0.0.2",
                                                         .application_turns = place.mode != engine_mode::thread});
            memories[end].emplace(at, where, memory_bytes, region_options{.rights = all_rights});
            queues[end].emplace(*devices[end], where, options_);
        }
    }
    void connect()
    {
        for (unsigned end = 0; end < 2; ++end)
            queue(end).connect(queue(1 - end).address());
    }
    /// Resets both queues and connects them again.
    void reset()
    {
        for (unsigned end = 0; end < 2; ++end)
            queue(end).reset();
        connect();
    }
    rdma_queue& queue(unsigned end) { return *queues[end]; }
    end_memory& memory(unsigned end) { return *memories[end]; }
    weftio_dev_buf buffer(unsigned end) { return memory(end).region.buffer(); }
    weftio_dev_remote remote(unsigned end) { return remote_region::of(memory(end).region).on_device(); }
    /// In inline mode: runs the engine once.
    void turn()
    {
        if (detail::internals::backend(ports.get(0)).is_inline())
            ports.get(0).turn();
    }

    device where;

 private:
    rdma_queue_options options_;

 public:
    wired_ports ports;
    std::array<std::optional<rdma_device>, 2> devices;
    std::array<std::optional<end_memory>, 2> memories;
    std::array<std::optional<rdma_queue>, 2> queues;
};

} // namespace weftio::test
