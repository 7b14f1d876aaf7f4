// Memory of one end of a connection that its peer may access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "segments.hpp"
#include "weftio/weftio.hpp"

namespace weftio::test {

inline constexpr access all_rights =
    access::local_write | access::remote_write | access::remote_read | access::remote_atomic;

/// Memory of one end.
struct end_memory {
    end_memory(const port& port, const device& device, std::size_t bytes, region_options options)
        : memory(device.allocate(bytes, memory_kind::cpu_device)), region(port, memory, options), bytes(bytes)
    {
        static unsigned made = 0; // the content of each memory differs
        std::minstd_rand random(++made);
        for (std::size_t at = 0; at < bytes; ++at)
            data()[at] = static_cast<std::uint8_t>(random() >> 8);
    }
    std::uint8_t* data() const { return static_cast<std::uint8_t*>(memory.cpu_address()); }
    std::uint64_t address(std::size_t at = 0) const { return region.iova() + at; }
    segment local(std::size_t at, std::size_t count) const
    {
        return pointer(static_cast<std::uint32_t>(count), region.lkey(), address(at));
    }
    segment remote_at(std::size_t at) const { return remote(address(at), region.lkey()); }
    std::vector<std::uint8_t> copy() const { return {data(), data() + bytes}; }

    weftio::memory memory;
    memory_region region;
    std::size_t bytes;
};

} // namespace weftio::test
