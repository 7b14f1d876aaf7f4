// One entry of an RDMA queue, decoded and checked (docs/formats.md, "Entries").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/guarded.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/rdma/staged_pair.hpp"
#include "nic/soft/work/entry.hpp"
#include "roce/send_entries.hpp"

namespace weftio::nic::soft {

/// Some local bytes of a message: named by a key, or inline in the entry.
struct local_piece {
    const std::uint8_t* inlined = nullptr; ///< nullptr: key and address are valid
    std::uint32_t key = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

/// Reads a pointer segment. A byte count of 0 means 2^31.
local_piece piece_of(const weftio_wqe_data_segment& pointer) noexcept;

/// Bytes [offset, offset + bytes) of a message. A walk over the data segments cuts them into pieces.
struct byte_window {
    std::uint64_t offset = 0, bytes = 0;

    bool empty() const noexcept { return bytes == 0; }
    /// Shortens `piece` to the part inside the window, and moves the window past it. @return false: no part of it is
    /// inside
    bool cut(local_piece& piece) noexcept;
};

/// Iterates over the data segments of a send entry, in the ring. Inline pieces point into the ring.
class data_segments {
 public:
    /// @param first  index of the first data segment
    data_segments(const ring_segments& entry, std::uint32_t first) noexcept : entry_(entry), at_(first) {}

    bool more() const noexcept { return at_ < entry_.count() || rest_.bytes != 0; }
    /// Returns the next piece in `out`. @pre more()  @return wrong_size: it exceeds the entry
    refusal next(local_piece& out) noexcept;

 private:
    const ring_segments entry_;
    std::uint32_t at_;
    local_piece rest_; ///< the part of an inline piece that continues at the start of the ring
};

/// Iterates over the segments of a receive entry, which are pointers. A segment with the invalid key ends the list.
class receive_segments {
 public:
    explicit receive_segments(const ring_segments& entry) noexcept : entry_(entry) { load(); }

    bool more() const noexcept { return more_; }
    /// As data_segments::next().
    refusal next(local_piece& out) noexcept;

 private:
    void load() noexcept;

    const ring_segments entry_;
    std::uint32_t at_ = 0;
    bool more_ = false;
    weftio_wqe_data_segment segment_{};
};

/// Finds the memory of a piece that is not inline, and checks key, domain, rights and range.
refusal find(const local_piece& piece, const keys::queue_keys& keys, access needed, std::byte*& at) noexcept;

/// The same for memory that the CPU cannot access. @return out_of_reach: copies do not reach it either
refusal find_staged(const local_piece& piece, const keys::queue_keys& keys, const staged_pair* staged, access needed,
                    keys::located& found) noexcept;

/// Calls `what` for each piece in the window until one is refused.
/// @return the reason; too_short: the window is not filled; or none
template <class Segments, class Do>
refusal for_each_piece(Segments data, byte_window window, refusal too_short, Do&& what)
{
    while (data.more() && !window.empty()) {
        local_piece piece;
        if (const refusal reason = data.next(piece); reason != refusal::none)
            return reason;
        if (!window.cut(piece))
            continue;
        if (const refusal reason = what(piece); reason != refusal::none)
            return reason;
    }
    return window.empty() ? refusal::none : too_short;
}

/// As scatter(), where a piece lies in memory that the CPU cannot access. The copies of some pieces may have begun when
/// there is no room for those of others: a repeat writes them again.
template <class Segments>
[[gnu::cold]] refusal scatter_staged(Segments to, const keys::queue_keys& keys, staged_pair* staged,
                                     std::uint32_t offset, std::span<const std::uint8_t> bytes, refusal too_short)
{
    std::array<keys::located, entry::most_segments + 1> targets;
    std::array<std::size_t, entry::most_segments + 1> sizes;
    std::size_t count = 0;
    const refusal why = for_each_piece(to, {offset, bytes.size()}, too_short, [&](const local_piece& piece) {
        std::byte* at = nullptr;
        sizes[count] = piece.bytes;
        keys::located& found = targets[count++];
        const refusal reason = piece.inlined ? refusal::wrong_segment : find(piece, keys, access::local_write, at);
        found.cpu = at;
        return reason == refusal::out_of_reach ? find_staged(piece, keys, staged, access::local_write, found) : reason;
    });
    if (why != refusal::none)
        return why;
    for (std::size_t each = 0; each != count; ++each) {
        const std::span<const std::uint8_t> part = bytes.first(sizes[each]);
        bytes = bytes.subspan(sizes[each]);
        if (targets[each].cpu == nullptr) {
            if (const refusal begun = staged->write(targets[each], part); begun != refusal::none)
                return begun;
        } else if (!core::guarded_copy(targets[each].cpu, part.data(), part.size())) {
            return refusal::memory_gone;
        }
    }
    return refusal::none;
}

/// Writes `bytes` to the memory that the segments name, `offset` bytes after its start. Checks all pieces before it
/// writes a byte; memory may still go away at any time.
/// @param staged  copies to memory that the CPU cannot access; nullptr: nobody does
/// @return none, what is wrong with the memory, roce::not_now, or `too_short`: the segments name less
template <class Segments>
refusal scatter(Segments to, const keys::queue_keys& keys, staged_pair* staged, std::uint32_t offset,
                std::span<const std::uint8_t> bytes, refusal too_short)
{
    std::array<std::span<std::byte>, entry::most_segments + 1> targets;
    std::size_t count = 0;
    const refusal why = for_each_piece(to, {offset, bytes.size()}, too_short, [&](const local_piece& piece) {
        std::byte* at = nullptr;
        const refusal found = piece.inlined ? refusal::wrong_segment : find(piece, keys, access::local_write, at);
        targets[count++] = {at, static_cast<std::size_t>(piece.bytes)};
        return found;
    });
    if (why != refusal::none)
        return why == refusal::out_of_reach ? scatter_staged(to, keys, staged, offset, bytes, too_short) : why;
    const std::uint8_t* from = bytes.data();
    for (std::size_t each = 0; each != count; from += targets[each++].size())
        if (!core::guarded_copy(targets[each].data(), from, targets[each].size()))
            return refusal::memory_gone;
    return refusal::none;
}

/// Decodes the entry at `index`, which has at most `available` blocks, and checks all its memory. Reads the parts other
/// than data segments once. Does not set the field `more`.
/// @return why the entry cannot be executed, or none; `blocks` and `control` are right even then
/// @param service  of the queue pair: with datagram, SENDs have a datagram segment, which is not read
refusal read_message(const entry_ring& ring, std::uint32_t index, std::uint32_t available, rdma_service service,
                     const keys::queue_keys& keys, entry_control& control, roce::message& out) noexcept;

/// What a UMR entry asks of a window.
struct window_entry {
    bool invalidates = false;
    keys::window_bind bind{}; ///< of an invalidation: its key is `window`
};

/// Decodes a UMR entry, each word of which it reads once. @pre `out.bind.strict` is set
/// @return why it is neither a bind nor an invalidation, or none
refusal read_window_entry(const entry_ring& ring, std::uint32_t index, std::uint32_t segments, std::uint32_t key,
                          window_entry& out) noexcept;

} // namespace weftio::nic::soft
