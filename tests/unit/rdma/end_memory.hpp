// Memory of one end of a connection that its peer may access, and entries that name it (docs/formats.md, "Entries").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "weftio/device/wqe.h"
#include "weftio/weftio.hpp"

namespace weftio::test {

/// One segment of an entry, in host byte order.
struct segment {
    std::uint32_t words[4];
};

inline segment pointer(std::uint32_t bytes, std::uint32_t key, std::uint64_t address)
{
    return {{bytes, key, static_cast<std::uint32_t>(address >> 32), static_cast<std::uint32_t>(address)}};
}
inline segment remote(std::uint64_t address, std::uint32_t key)
{
    return {{static_cast<std::uint32_t>(address >> 32), static_cast<std::uint32_t>(address), key, 0}};
}
inline segment atomic(std::uint64_t swap_or_add, std::uint64_t compare = 0)
{
    return {{static_cast<std::uint32_t>(swap_or_add >> 32), static_cast<std::uint32_t>(swap_or_add),
             static_cast<std::uint32_t>(compare >> 32), static_cast<std::uint32_t>(compare)}};
}
/// An inline segment. @param words  its bytes, read as big-endian numbers
inline std::vector<segment> inlined(const std::vector<std::uint8_t>& bytes)
{
    std::vector<std::uint8_t> raw(4 + bytes.size());
    const auto count = WEFTIO_INLINE_SEGMENT | static_cast<std::uint32_t>(bytes.size());
    for (unsigned at = 0; at < 4; ++at)
        raw[at] = static_cast<std::uint8_t>(count >> (24 - 8 * at));
    std::copy(bytes.begin(), bytes.end(), raw.begin() + 4);
    raw.resize((raw.size() + 15) / 16 * 16);
    std::vector<segment> all(raw.size() / 16);
    for (std::size_t at = 0; at < raw.size(); ++at)
        all[at / 16].words[at % 16 / 4] |= std::uint32_t{raw[at]} << (24 - 8 * (at % 4));
    return all;
}
/// Writes an entry for queue pair `queue` to a send ring, at block `index`. Returns how many blocks it takes.
inline std::uint32_t write_entry(std::span<std::uint32_t> ring, std::uint32_t index, std::uint32_t queue,
                                 std::uint32_t opcode, const std::vector<segment>& body, std::uint32_t immediate,
                                 std::uint8_t flags)
{
    const auto segments = static_cast<std::uint32_t>(body.size() + 1);
    std::vector<segment> all{
        {{opcode | (index & 0xffff) << 8, queue << 8 | segments, std::uint32_t{flags}, immediate}}};
    all.insert(all.end(), body.begin(), body.end());
    for (std::uint32_t at = 0; at < all.size() * 4; ++at)
        weftio_store_relaxed_u32(&ring[(index * 16 + at) % ring.size()], weftio_swap32(all[at / 4].words[at % 4]));
    return (segments + 3) / 4;
}

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
