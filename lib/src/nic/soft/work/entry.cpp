#include "nic/soft/work/entry.hpp"

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t words_per_segment = entry::words_per_segment, words_per_block = 16,
                        segments_per_block = words_per_block / words_per_segment;

/// Copies a segment and loads each word exactly once: the compiler may repeat a plain load, but not this one. A
/// concurrent write by a kernel is no data race.
void copy_segment(std::uint32_t* to, const std::uint32_t* from) noexcept
{
#pragma GCC unroll 4
    for (std::uint32_t at = 0; at < words_per_segment; ++at)
        to[at] = weftio_load_relaxed_u32(from + at);
}

} // namespace

refusal read_control(const entry_ring& ring, std::uint32_t index, std::uint32_t available, const std::uint32_t* words,
                     entry_control& out) noexcept
{
    const std::uint32_t head = weftio_swap32(words[0]), queue_ds = weftio_swap32(words[1]);
    out.segments = 1; // a refused entry counts as one segment
    out.opcode = (head & 0xff) | (head >> 24) << 8;
    const std::uint32_t mode = words[2] >> 24 & WEFTIO_CE_ALWAYS_AND_EVENT;
    out.event = mode == WEFTIO_CE_ALWAYS_AND_EVENT;
    out.asked = (mode & WEFTIO_CE_ALWAYS) != 0;
    if ((head >> 8 & 0xffff) != (index & 0xffff))
        return refusal::wrong_index;
    if (queue_ds >> 8 != ring.queue)
        return refusal::wrong_queue;
    const std::uint32_t segments = queue_ds & 0x3f;
    if (segments == 0 || segments > entry::most_segments || (segments + 3) / 4 > available)
        return refusal::wrong_size;
    out.segments = segments;
    return refusal::none;
}

refusal fetch_any(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept
{
    const auto block = [&](std::uint32_t behind) {
        return ring.words + std::size_t{(index + behind) & (ring.depth - 1)} * words_per_block;
    };
    copy_segment(out.words.data(), block(0));
    if (const refusal why = read_control(ring, index, available, out.words.data(), out); why != refusal::none)
        return why;
    const std::uint32_t* from = block(0);
    for (std::uint32_t at = 1; at < out.segments; ++at) {
        from = at % segments_per_block == 0 ? block(at / segments_per_block) : from + words_per_segment;
        copy_segment(&out.words[at * words_per_segment], from);
    }
    return refusal::none;
}

} // namespace weftio::nic::soft
