// Segments of entries of queue pairs (docs/formats.md, "Entries").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "weftio/device/wqe.h"

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

} // namespace weftio::test
