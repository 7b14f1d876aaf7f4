// What the file of a wire holds: a head with the table of members, and a ring of frames for each pair of members.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace weftio::wires {

constexpr unsigned most_members = 64;           ///< a bitmap of 64 bits has one for each
constexpr std::uint32_t ring_bytes = 512 << 10; ///< of one channel; a power of two
constexpr std::uint32_t unit_bytes = 64;        ///< records begin at multiples of it
constexpr std::uint32_t most_frame_bytes = 16384;

/// Positions in a ring count bytes since the wire was made; they never go back.
struct channel_state {
    alignas(64) std::atomic<std::uint64_t> produced; ///< written by the sender, behind the bytes of frames
    alignas(64) std::atomic<std::uint64_t> consumed; ///< written by the receiver; and once by a new receiver
};

/// What all members know of one.
struct slot_state {
    /// Lanes with news, a bit for each sender. Senders set bits, the receiver clears them.
    alignas(64) std::atomic<std::uint64_t> news;
    /// Odd: the slot has a member, or one that was killed. Grows by one when a member joins and when it leaves.
    alignas(64) std::atomic<std::uint32_t> life;
    std::atomic<std::uint32_t> process; ///< in its own PID namespace
    std::atomic<std::uint32_t> first_queue, queues;
    std::array<std::atomic<std::uint64_t>, 2> address; ///< bytes of a GID in their order
};

/// Begin of a record in a ring. The frame follows.
struct record {
    static constexpr std::uint32_t skip = UINT32_MAX; ///< as `bytes`: the next record is at the begin of the ring
    std::uint32_t bytes;
    std::uint32_t reserved;
};

/// Begin of the file. A new file is all zeros; `magic` is written last.
struct head {
    static constexpr std::uint64_t right_magic = 0x6572697774666577; // "weftwire" in memory of x86-64
    static constexpr std::uint32_t this_version = 1;

    std::atomic<std::uint64_t> magic;
    std::uint32_t version, head_bytes, members, bytes_of_ring;
    std::array<slot_state, most_members> slots;
    std::array<std::array<channel_state, most_members>, most_members> channels; ///< [sender][receiver]
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(sizeof(channel_state) == 128 && sizeof(slot_state) == 128 && sizeof(record) == 8);

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t head_bytes = (sizeof(head) + page_bytes - 1) / page_bytes * page_bytes;

/// Offset of a ring in the file.
constexpr std::uint64_t ring_offset(unsigned sender, unsigned receiver)
{
    return head_bytes + (std::uint64_t{sender} * most_members + receiver) * ring_bytes;
}

/// Bytes that a frame takes in a ring.
constexpr std::uint32_t record_bytes(std::uint32_t frame_bytes)
{
    return (static_cast<std::uint32_t>(sizeof(record)) + frame_bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
}

} // namespace weftio::wires
