// One send entry, read once and checked, because a kernel may change the ring at any time (docs/formats.md, "Entries").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "keys/queue_keys.hpp"
#include "nic/soft/work/entry.hpp"
#include "weftio/device/cqe.h"
#include "weftio/device/wqe.h"

namespace weftio::nic::soft {

/// A plain send: a SEND of one piece of memory, with no checksum to fill in and no notification. Nearly all entries are
/// plain sends.
struct plain_send {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint32_t key = 0;
};

/// The first two words of a plain send at `index`, as one number. The number for the next entry is larger by
/// `next_plain_start`, up to the end of the ring, where the 16-bit index may wrap.
inline std::uint64_t plain_start(const entry_ring& ring, std::uint32_t index) noexcept
{
    constexpr std::uint64_t segments = 3;
    return std::uint64_t{index & 0xffff} << 40 | std::uint64_t{WEFTIO_OPCODE_SEND} << 32 |
           (std::uint64_t{ring.queue} << 8 & 0xffffffff) | segments;
}
inline constexpr std::uint64_t next_plain_start = std::uint64_t{1} << 40;

/// Send step 4: reads the entry at `block` once. Returns whether it is a plain send, word for word as
/// weftio_dev_write_send writes it. fetch() decodes any other entry.
[[gnu::always_inline]] inline bool read_plain_send(const std::uint32_t* block, std::uint64_t start,
                                                   plain_send& out) noexcept
{
    constexpr std::uint64_t mode = std::uint64_t{WEFTIO_CE_ALWAYS} << 24;
    const auto* two_words = reinterpret_cast<const std::uint64_t*>(block);
    const std::uint64_t other =
        (weftio_swap64(two_words[0]) ^ start) | (two_words[1] ^ mode) | two_words[2] | two_words[3];
    const std::uint64_t count_key = weftio_swap64(weftio_load_acquire_sys_u64(&two_words[4]));
    // An inline segment has bit 31 set: more bytes than any frame has.
    out.bytes = static_cast<std::uint32_t>(count_key >> 32);
    out.key = static_cast<std::uint32_t>(count_key);
    out.address = weftio_swap64(weftio_load_acquire_sys_u64(&two_words[5]));
    return other == 0;
}

/// As fetch_any(), for an Ethernet queue: refuses opcodes that such a queue does not execute.
refusal fetch(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept;

/// A piece of a frame.
struct frame_piece {
    const std::byte* bytes;
    std::uint32_t count;
    bool device_only = false; ///< the CPU cannot access it: `bytes` is an address of frame_pieces::device
    keys::held_key by{};      ///< key 0: inline bytes
};

/// The bytes of a SEND, in order: the inline header, then the segments. Inline pieces point into the copy of the entry.
struct frame_pieces {
    std::array<frame_piece, entry::most_segments> pieces;
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;
    /// Whether the frame must be copied: a piece lies in the copy of the entry, which is reused, or in memory that the
    /// port's device does not read.
    bool must_be_copied = false;
    /// The device whose memory holds pieces that the CPU cannot access; nullptr: there are none.
    const devices::device_backend* device = nullptr;
};

/// Send step 4: finds and checks every byte of a SEND. Returns why it cannot be sent, or refusal::none.
/// @param mtu  MTU of the port; a frame may be longer by its Ethernet header and at most two VLAN tags, which must be
///   in memory that the CPU can access
refusal gather(const entry& entry, const keys::queue_keys& keys, std::uint32_t mtu, frame_pieces& out) noexcept;

/// Reads the deadline of a WAIT on time, as UTC nanoseconds (docs/formats.md, "Waiting"). Returns why the wait is
/// malformed, or refusal::none.
refusal read_wait(const entry& entry, std::uint64_t& deadline_ns) noexcept;

} // namespace weftio::nic::soft
