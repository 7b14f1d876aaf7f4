#include "nic/soft/work/entry.hpp"

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t words_per_segment = entry::words_per_segment, words_per_block = 16;

/// Loads a word exactly once. The compiler may repeat a plain load; it must not repeat this one. A kernel that writes
/// the word meanwhile is no data race.
std::uint32_t load_once(const std::uint32_t* word) noexcept
{
    return weftio_load_relaxed_u32(word);
}

} // namespace

refusal fetch_any(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept
{
    const std::uint32_t mask = ring.depth * words_per_block - 1;
    auto word = [&](std::uint32_t at) { return load_once(&ring.words[(index * words_per_block + at) & mask]); };
    for (std::uint32_t at = 0; at < words_per_segment; ++at)
        out.words[at] = word(at);
    std::uint32_t head = weftio_swap32(out.words[0]), queue_ds = weftio_swap32(out.words[1]);
    out.segments = 1; // a refused entry counts as one segment
    out.opcode = (head & 0xff) | (head >> 24) << 8;
    const std::uint32_t mode = out.words[2] >> 24 & WEFTIO_CE_ALWAYS_AND_EVENT;
    out.event = mode == WEFTIO_CE_ALWAYS_AND_EVENT;
    out.asked = (mode & WEFTIO_CE_ALWAYS) != 0;
    if ((head >> 8 & 0xffff) != (index & 0xffff))
        return refusal::wrong_index;
    if (queue_ds >> 8 != ring.queue)
        return refusal::wrong_queue;
    std::uint32_t segments = queue_ds & 0x3f;
    if (segments == 0 || segments > entry::most_segments || (segments + 3) / 4 > available)
        return refusal::wrong_size;
    out.segments = segments;
    for (std::uint32_t at = words_per_segment; at < segments * words_per_segment; ++at)
        out.words[at] = word(at);
    return refusal::none;
}

} // namespace weftio::nic::soft
