// Reads a capture; shared by two fuzzers.
#pragma once

#include <algorithm>
#include <cstdlib>

#include "reader/capture.hpp"

namespace weftio::replay {

/// Reads a capture to its end twice and touches every byte of every frame. Both passes must give the same result.
inline void read_whole(const std::uint8_t* data, std::size_t bytes)
{
    auto reader = make_reader(input(make_memory_source(data, bytes)));
    std::uint64_t frames[2] = {}, sums[2] = {}, damaged_at[2] = {};
    for (int pass = 0; pass < 2; ++pass) {
        frame next;
        while (reader->next(next)) {
            ++frames[pass];
            for (std::byte byte : next.bytes)
                sums[pass] = sums[pass] * 31 + static_cast<std::uint64_t>(byte);
            if (next.offset >= bytes || next.bytes.size() > std::min<std::size_t>(longest_frame, bytes - next.offset))
                std::abort(); // beyond the end of the file, but within the reader's buffer: no sanitizer detects it
        }
        if (!reader->format() || reader->next(next)) // after the end there is no further frame
            std::abort();
        damaged_at[pass] = reader->damaged() ? reader->damaged()->offset + 1 : 0;
        if (damaged_at[pass] > bytes + 1 || (reader->damaged() && reader->damaged()->reason.empty()))
            std::abort();
        if (pass == 0 && !reader->rewind())
            std::abort();
    }
    if (frames[0] != frames[1] || sums[0] != sums[1] || damaged_at[0] != damaged_at[1])
        std::abort();
}

} // namespace weftio::replay
