// Entries that bind and free memory windows, word by word (docs/formats.md, "Windows").
#pragma once

#include <cstdint>
#include <vector>

#include "end_memory.hpp"

namespace weftio::test {

/// What a bind says of a window. A bind of type 2 has the number of its queue.
struct window_entry {
    std::uint32_t next = 0; ///< key; its variant counts
    std::uint32_t region = 0;
    std::uint64_t address = 0, bytes = 0;
    access rights = access::none;
    window_type type = window_type::type_1;
    std::uint32_t queue = WEFTIO_MKEY_ANY_QUEUE;
};

/// The first segments of a UMR entry behind its control segment: what it does, and to which window.
inline std::vector<segment> umr_segments(std::size_t count, std::uint32_t flags, std::uint32_t mask,
                                         std::uint32_t queue_variant)
{
    std::vector<segment> all(count, segment{});
    all[0] = {{flags << 24, 0, 0, mask}};
    all[3] = {{std::uint32_t{WEFTIO_MKEY_FREE} << 24, queue_variant, 0, 0}};
    return all;
}

inline std::vector<segment> bind_segments(const window_entry& what)
{
    const bool type_2 = what.type == window_type::type_2;
    const auto given = [&](access right, std::uint32_t bit) {
        return (what.rights & right) != access::none ? bit << 8 : 0;
    };
    std::vector<segment> all =
        umr_segments(11, type_2 ? WEFTIO_UMR_BIND_TYPE_2 : WEFTIO_UMR_BIND_TYPE_1,
                     WEFTIO_UMR_MASK_RIGHTS | (type_2 ? WEFTIO_UMR_MASK_BIND_TYPE_2 : WEFTIO_UMR_MASK_BIND_TYPE_1),
                     what.queue << 8 | (what.next & 0xff));
    all[0].words[1] = 4u << 16; // octowords of memory
    all[3].words[0] = given(access::remote_write, WEFTIO_MKEY_REMOTE_WRITE) |
                      given(access::remote_read, WEFTIO_MKEY_REMOTE_READ) |
                      given(access::remote_atomic, WEFTIO_MKEY_ATOMIC);
    all[4] = remote(what.address, static_cast<std::uint32_t>(what.bytes >> 32));
    all[4].words[3] = static_cast<std::uint32_t>(what.bytes);
    all[7] = pointer(static_cast<std::uint32_t>(what.bytes), what.region, what.address);
    return all;
}

/// Frees a window of type 1. @param next  its variant is that of the next key
inline std::vector<segment> unbind_segments(std::uint32_t next)
{
    return umr_segments(7, WEFTIO_UMR_BIND_TYPE_1, WEFTIO_UMR_MASK_UNBIND, WEFTIO_MKEY_ANY_QUEUE << 8 | (next & 0xff));
}

/// Frees a window of type 2.
inline std::vector<segment> invalidate_segments(std::uint32_t next)
{
    return umr_segments(7, WEFTIO_UMR_INVALIDATE, WEFTIO_UMR_MASK_INVALIDATE,
                        WEFTIO_MKEY_ANY_QUEUE << 8 | (next & 0xff));
}

} // namespace weftio::test
