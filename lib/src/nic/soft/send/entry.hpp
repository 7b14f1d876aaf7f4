// One send entry, read once from a ring that a kernel may change at any time, and checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "nic/backend.hpp"
#include "weftio/device/cqe.h"
#include "weftio/device/wqe.h"

namespace weftio::nic {

class queue_keys;

/// Why an entry was refused, finer than a syndrome.
enum class refusal : std::uint8_t {
    none,
    unknown_opcode,
    wrong_index, ///< the entry says it is another one: written to the wrong position, or not written
    wrong_queue,
    wrong_size,    ///< segments do not add up
    wrong_segment, ///< a segment that this opcode does not take
    no_payload,    ///< a frame of no bytes
    too_long,      ///< longer than the port's MTU allows
    unknown_key,   ///< no region has that key, or it is of an earlier region
    other_domain,  ///< the key is of another protection domain than the queue
    no_right,      ///< the region may not be written
    outside_region,
    wrong_wait,     ///< condition, nanoseconds of a second or more
    too_far_ahead,  ///< waits beyond the horizon
    wrong_doorbell, ///< the record claims more entries than the ring holds
    port_gone,      ///< the device or its interface was taken away
    link_down,      ///< the interface has been down, or without a carrier, for too long
    file_failed,    ///< the capture file cannot be written
    device_failed,  ///< the device whose copy engine was to copy has failed
    flushed,        ///< the queue was in error already
};

/// The syndrome that hardware would report.
std::uint8_t syndrome_of(refusal reason) noexcept;
const char* to_string(refusal reason) noexcept;

/// A copy of one entry, and what it asks for.
struct entry {
    static constexpr std::size_t most_segments = 60;

    std::array<std::uint32_t, most_segments * 4> words{};
    std::uint32_t segments = 0; ///< 1 .. most_segments
    std::uint32_t opcode = 0;   ///< with the modifier in bits 15:8
    bool event = false;         ///< the host wants to be told
    std::uint8_t cs_flags = 0;

    std::uint32_t blocks() const noexcept { return (segments + 3) / 4; }
};

/// What nearly all entries are: a SEND of one piece of memory, as it is, of which the host need not be told.
struct plain_send {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint32_t key = 0;
};

/// The first two words of the entry `index` as a number, if it is one of these. That of the next is `next_plain_start`
/// more, up to the end of the ring, where the index may begin again.
inline std::uint64_t plain_start(const entry_ring& ring, std::uint32_t index) noexcept
{
    constexpr std::uint64_t segments = 3;
    return std::uint64_t{index & 0xffff} << 40 | std::uint64_t{WEFTIO_OPCODE_SEND} << 32 |
           (std::uint64_t{ring.queue} << 8 & 0xffffffff) | segments;
}
inline constexpr std::uint64_t next_plain_start = std::uint64_t{1} << 40;

/// Reads the entry at `block` once, if it is one of these, word for word as weftio_dev_write_send makes them. Returns
/// whether it was; fetch() tells what else it is.
[[gnu::always_inline]] inline bool read_plain_send(const std::uint32_t* block, std::uint64_t start,
                                                   plain_send& out) noexcept
{
    constexpr std::uint64_t mode = std::uint64_t{WEFTIO_CE_ALWAYS} << 24;
    const auto* two_words = reinterpret_cast<const std::uint64_t*>(block);
    const std::uint64_t other =
        (weftio_swap64(two_words[0]) ^ start) | (two_words[1] ^ mode) | two_words[2] | two_words[3];
    const std::uint64_t count_key = weftio_swap64(weftio_load_acquire_sys_u64(&two_words[4]));
    out.bytes = static_cast<std::uint32_t>(count_key >> 32); // as an inline segment: more than any frame has
    out.key = static_cast<std::uint32_t>(count_key);
    out.address = weftio_swap64(weftio_load_acquire_sys_u64(&two_words[5]));
    return other == 0;
}

/// Copies the entry at `index`, at most `available` blocks of it, whatever its opcode. Returns why it cannot be executed,
/// or refusal::none.
refusal fetch_any(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept;

/// The same of an entry of an Ethernet queue: opcodes that it has not are refused.
refusal fetch(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept;

/// A piece of a frame.
struct frame_piece {
    const std::byte* bytes;
    std::uint32_t count;
};

/// The bytes of a SEND, in order: inlined header, then segments, inline ones pointing into the copy.
struct frame_pieces {
    std::array<frame_piece, entry::most_segments> pieces;
    std::uint32_t count = 0;
    std::uint32_t bytes = 0;
    bool must_be_copied =
        false; ///< some of it lies in the copy, which does not last, or where the device does not read
};

/// Finds and checks every byte of a SEND. @param mtu  of the port: a frame has an Ethernet header and at most two VLAN
/// tags more
refusal gather(const entry& entry, const queue_keys& keys, std::uint32_t mtu, frame_pieces& out) noexcept;

/// Deadline of a WAIT on time as UTC nanoseconds.
refusal read_wait(const entry& entry, std::uint64_t& deadline_ns) noexcept;

} // namespace weftio::nic
