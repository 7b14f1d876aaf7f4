// Two ends of public objects. Kernels, or a test in the place of one, use what this header makes: an RDMA device and
// memory at each end (public_ends), two connected rdma_queues (queue_ends), at ports on a wire (public_pair).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "end_memory.hpp"
#include "nic/backend.hpp"
#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"
#include "wired_ports.hpp"

namespace weftio::test {

class public_ends {
 public:
    static constexpr std::size_t memory_bytes = 65536;

    /// @param ports  of each end; both may be the same
    public_ends(const std::array<port*, 2>& ports, engine_mode mode, const std::string& device_spec = "cpu",
                std::size_t bytes = memory_bytes)
        : where(device::open(device_spec))
    {
        for (unsigned end = 0; end < 2; ++end) {
            devices[end].emplace(*ports[end], rdma_device_options{.address = end == 0 ? "10.0.0.1" : "10.0.0.2",
                                                                  .application_turns = mode != engine_mode::thread});
            memories[end].emplace(*ports[end], where, bytes, region_options{.rights = all_rights});
        }
    }
    end_memory& memory(unsigned end) { return *memories[end]; }
    weftio_dev_buf buffer(unsigned end) { return memory(end).region.buffer(); }
    weftio_dev_remote remote(unsigned end) { return remote_region::of(memory(end).region).on_device(); }

    device where;
    std::array<std::optional<rdma_device>, 2> devices;
    std::array<std::optional<end_memory>, 2> memories;
};

/// Not connected at first.
class queue_ends : public public_ends {
 public:
    queue_ends(const std::array<port*, 2>& ports, engine_mode mode,
               const rdma_queue_options& options = {.entries = 64, .receive_entries = 64},
               const std::string& device_spec = "cpu")
        : public_ends(ports, mode, device_spec)
    {
        for (unsigned end = 0; end < 2; ++end)
            queues[end].emplace(*devices[end], where, options);
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

    std::array<std::optional<rdma_queue>, 2> queues;
};

/// The ports of ends on a wire: a base, because ports open before the objects at them and close behind them.
struct ends_on_wire {
    wired_ports ports;
};

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

class public_pair : public ends_on_wire, public queue_ends {
 public:
    explicit public_pair(place_of_ends place, rdma_queue_options options = {.entries = 64, .receive_entries = 64},
                         const std::string& device_spec = "cpu")
        : ends_on_wire{wired_ports(place.mode)},
          queue_ends(ports.of_ends(place.one_port), place.mode, patient(options), device_spec)
    {}
    /// In inline mode: runs the engine once.
    void turn()
    {
        if (detail::internals::backend(ports.get(0)).is_inline())
            ports.get(0).turn();
    }

 private:
    /// Retries for 8.6 s: an engine may be delayed by a busy machine or a sanitizer's report.
    static rdma_queue_options patient(rdma_queue_options options)
    {
        options.timeout = 18;
        return options;
    }
};

} // namespace weftio::test
