// An entry of a send ring, read once: a kernel may change the ring at any time (docs/formats.md, "Entries").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/refusal.hpp"
#include "nic/soft/work/rings.hpp"
#include "weftio/device/platform.h"
#include "weftio/device/wqe.h"

namespace weftio::nic::soft {

/// What the control segment of an entry says.
struct entry_control {
    std::uint32_t segments = 0; ///< 1 .. entry::most_segments
    std::uint32_t opcode = 0;   ///< opcode in bits 7:0, modifier in bits 15:8
    bool event = false;         ///< the host wants a notification
    bool asked = false;         ///< it asks for a completion

    std::uint32_t blocks() const noexcept { return (segments + 3) / 4; }
};

/// A copy of one entry, and its decoded fields.
struct entry : entry_control {
    static constexpr std::size_t most_segments = 63, words_per_segment = 4;

    std::array<std::uint32_t, most_segments * words_per_segment> words{};
    std::uint8_t cs_flags = 0;
};

/// Consecutive segments of a ring, which may continue at its start.
class ring_segments {
 public:
    ring_segments() noexcept = default;
    /// @param first, count  both in segments; the ring has a power of two of them
    ring_segments(const std::uint32_t* ring, std::uint32_t depth, std::uint32_t first, std::uint32_t count) noexcept
        : ring_(ring), mask_(depth - 1), first_(first), count_(count)
    {}
    /// Those of the entry at `index`.
    ring_segments(const entry_ring& ring, std::uint32_t index, std::uint32_t count) noexcept
        : ring_segments(ring.words, ring.depth * 4, index * 4, count)
    {}

    std::uint32_t count() const noexcept { return count_; }
    /// Address of segment number `segment`.
    const std::uint32_t* at(std::uint32_t segment) const noexcept
    {
        return ring_ + std::size_t{(first_ + segment) & mask_} * entry::words_per_segment;
    }
    /// How many segments from that number on are in one piece.
    std::uint32_t in_one_piece(std::uint32_t segment) const noexcept
    {
        return mask_ + 1 - ((first_ + segment) & mask_);
    }
    /// Copies a segment and loads each word exactly once: a concurrent write by a kernel is no data race.
    template <class Segment>
    Segment load(std::uint32_t segment) const noexcept
    {
        std::array<std::uint32_t, entry::words_per_segment> words;
        const std::uint32_t* const from = at(segment);
        for (std::size_t each = 0; each < words.size(); ++each)
            words[each] = weftio_load_relaxed_u32(from + each);
        Segment result;
        static_assert(sizeof result == sizeof words);
        std::memcpy(&result, words.data(), sizeof result);
        return result;
    }

 private:
    const std::uint32_t* ring_ = nullptr;
    std::uint32_t mask_ = 0, first_ = 0, count_ = 0;
};

/// Segment number `segment` of a copy. @pre segment < entry.segments, or the words after the copy are 0
template <class Segment>
Segment segment_at(const entry& entry, std::size_t segment) noexcept
{
    Segment result;
    std::memcpy(&result, &entry.words[segment * entry::words_per_segment], sizeof result);
    return result;
}

/// Send step 4: decodes the control segment of the entry at `index`, which has at most `available` blocks; accepts any
/// opcode. @param words  a copy of the segment  @return why the entry cannot be executed, or refusal::none
refusal read_control(const entry_ring& ring, std::uint32_t index, std::uint32_t available, const std::uint32_t* words,
                     entry_control& out) noexcept;
/// Send step 4: copies the entry at `index`, at most `available` blocks of it; accepts any opcode. Returns why the
/// entry cannot be executed, or refusal::none.
refusal fetch_any(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept;

} // namespace weftio::nic::soft
