// An entry of a send ring, read once: a kernel may change the ring at any time (docs/formats.md, "Entries").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/refusal.hpp"
#include "nic/soft/work/rings.hpp"
#include "weftio/device/wqe.h"

namespace weftio::nic::soft {

/// A copy of one entry, and its decoded fields.
struct entry {
    static constexpr std::size_t most_segments = 63, words_per_segment = 4;

    std::array<std::uint32_t, most_segments * words_per_segment> words{};
    std::uint32_t segments = 0; ///< 1 .. most_segments
    std::uint32_t opcode = 0;   ///< opcode in bits 7:0, modifier in bits 15:8
    bool event = false;         ///< the host wants a notification
    bool asked = false;         ///< it asks for a completion
    std::uint8_t cs_flags = 0;

    std::uint32_t blocks() const noexcept { return (segments + 3) / 4; }
};

/// Segment number `segment` of a copy. @pre segment < entry.segments, or the words after the copy are 0
template <class Segment>
Segment segment_at(const entry& entry, std::size_t segment) noexcept
{
    Segment result;
    std::memcpy(&result, &entry.words[segment * entry::words_per_segment], sizeof result);
    return result;
}

/// Send step 4: copies the entry at `index`, at most `available` blocks of it; accepts any opcode. Returns why the
/// entry cannot be executed, or refusal::none.
refusal fetch_any(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept;

} // namespace weftio::nic::soft
