// A member of a wire in shared memory: sends frames to the other members and receives theirs.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/counter.hpp"
#include "wires/channel.hpp"
#include "wires/members.hpp"
#include "wires/wire_file.hpp"

namespace weftio::wires {

/// A wire is a switch without memory of its own: each pair of members has a channel of 512 KiB in each direction, which
/// the first frame makes.
///
/// - Threads: one sends and receives. Others may call the functions that say so.
/// - Processes: a child of fork() must not use it. The slot is the parent's alone.
/// - Errors: nothing throws after the constructor. What cannot be delivered is dropped and counted.
class member {
 public:
    /// Joins, and makes the wire if it has no member. Throws what wire_file throws.
    /// @param who  begin of error texts: "port wire:x"
    member(std::string who, std::string_view name, const std::string& folder = usual_folder);
    member(const member&) = delete;
    member& operator=(const member&) = delete;
    ~member();

    unsigned slot() const noexcept { return file_.slot(); }
    const mac& address() const noexcept { return address_; }

    enum class outcome : std::uint8_t {
        sent,    ///< the receivers see it after publish()
        dropped, ///< counted; the caller is done with it
        full     ///< the receiver makes progress, and its channel has no room now: try again
    };
    /// Sends to the member that has the destination MAC, also to this one; a broadcast or multicast to all others.
    /// Never blocks. Drops a frame
    ///     - whose destination no member has;
    ///     - whose receiver was killed, or has consumed nothing for 100 ms while its channel was full;
    ///     - without memory for a new channel;
    ///     - of less than 14 or more than most_frame_bytes bytes;
    ///     - to several, for those whose channels are full.
    outcome send(std::span<const std::uint8_t> frame) noexcept;
    /// Makes what was sent visible.
    void publish() noexcept;

    /// Whether the member with that MAC has yet to read frames that were sent to it. False if it was killed or has
    /// left. Never blocks.
    /// @param[in,out] sent  which frames, by a position of their channel; 0: all that are published, and becomes the
    ///                      position behind them
    bool is_unread(const mac& to, std::uint64_t& sent) noexcept;

    /// The next frame from any member; empty if there is none. It stays in the channel until release(). Never blocks.
    std::span<const std::uint8_t> front() noexcept;
    /// Takes that frame.
    void pop() noexcept;
    /// Gives senders the memory of the frames that were taken. Call it once for a burst.
    void release() noexcept;

    /// Frames that were not delivered; each receiver of a multicast counts. Any thread.
    std::uint64_t dropped() const noexcept { return dropped_.value(); }
    /// Frames that were on their way to an earlier member of the slot. Any thread.
    std::uint64_t stray() const noexcept { return stray_.value(); }
    /// How often a channel made no sense and was emptied: somebody else has written to the file. Any thread.
    std::uint64_t damaged() const noexcept { return damaged_.value(); }

    /// Whether the member with that MAC has left or was killed, and this one has read all that it has sent. Any thread;
    /// a system call or none.
    bool has_left(const mac& from) const noexcept;

    /// Tell all processes. Any thread, one at a time.
    void tell_queues(std::uint32_t first, std::uint32_t count) noexcept;
    void tell_address(const gid& first) noexcept;
    /// The members, this one, too. Any thread.
    std::vector<member_facts> members() const;

 private:
    /// What this member knows of a receiver.
    struct receiver {
        channel_out channel;
        std::uint32_t life = 0;               ///< for which the fields below hold
        bool dead = false;                    ///< it was killed
        bool unresponsive = false;            ///< it consumes nothing
        std::uint64_t consumed = 0;           ///< when it was looked at last
        std::uint64_t since_ns = 0;           ///< it has not moved since
        std::uint64_t no_memory_until_ns = 0; ///< when a channel is tried again
    };

    receiver* find(std::span<const std::uint8_t, 6> to) noexcept;
    receiver* find(unsigned slot, std::uint32_t life) noexcept;
    outcome send_to(unsigned slot, std::span<const std::uint8_t> frame) noexcept;
    outcome send_to_all(std::span<const std::uint8_t> frame) noexcept;
    bool put(unsigned slot, receiver& to, std::span<const std::uint8_t> frame) noexcept;
    bool make_channel(unsigned slot, receiver& to) noexcept;
    void check_receivers() noexcept;
    void check_receiver(unsigned slot, receiver& to, std::uint64_t now_ns, bool in_a_row) noexcept;
    void hear_news() noexcept;
    channel_in* channel_from(unsigned slot) noexcept;
    bool is_for_us(std::span<const std::uint8_t> frame) const noexcept;
    void next_channel() noexcept;

    const std::string who_;
    wire_file file_;
    slot_state& own_;
    const std::uint32_t life_;
    const mac address_;
    std::array<receiver, most_members> to_{};
    std::uint64_t unpublished_ = 0;   ///< channels with frames that were put, a bit for each receiver
    std::uint64_t checked_at_ns_ = 0; ///< when receivers were looked after
    bool logged_no_memory_ = false;
    std::array<channel_in, most_members> from_{};
    std::uint64_t pending_ = 0;  ///< channels that may have frames, a bit for each sender
    std::uint64_t taken_of_ = 0; ///< channels of which frames were taken
    unsigned current_ = 0;       ///< the channel of front()
    unsigned in_a_row_ = 0;      ///< frames taken of it since another one
    core::counter dropped_, stray_, damaged_;
};

} // namespace weftio::wires
