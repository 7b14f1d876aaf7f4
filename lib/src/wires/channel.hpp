// The two ends of a channel: the ring of frames from one member to another.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "wires/layout.hpp"

namespace weftio::wires {

/// The sender's end. The owner maps the ring and keeps it mapped.
class channel_out {
 public:
    channel_out() = default;
    /// Goes on where the last sender of this channel has published: what it did not publish is overwritten.
    channel_out(channel_state& state, std::byte* ring) noexcept;

    explicit operator bool() const noexcept { return ring_ != nullptr; }
    /// Copies a frame into the ring; the receiver sees it after publish(). @return false: the ring is full
    bool put(std::span<const std::uint8_t> frame) noexcept;
    /// Makes all frames that were put visible. @return whether there were any
    bool publish() noexcept;
    /// What the receiver has not consumed of what was published, in bytes. At most ring_bytes.
    std::uint64_t waiting() const noexcept;
    /// The position behind what was published.
    std::uint64_t published() const noexcept { return published_; }
    /// Where the receiver is.
    std::uint64_t consumed() const noexcept { return state_->consumed.load(std::memory_order_acquire); }
    std::byte* ring() const noexcept { return ring_; }

 private:
    bool has_room(std::uint64_t bytes) noexcept;

    channel_state* state_ = nullptr;
    std::byte* ring_ = nullptr;
    std::uint64_t put_ = 0, published_ = 0;
    std::uint64_t consumed_ = 0; ///< as last read
};

/// The receiver's end. It believes nothing that the ring says: a ring that makes no sense is emptied.
class channel_in {
 public:
    channel_in() = default;
    channel_in(channel_state& state, std::byte* ring) noexcept;

    explicit operator bool() const noexcept { return ring_ != nullptr; }
    /// The oldest frame; empty if there is none. It stays until pop() and release().
    std::span<const std::uint8_t> front() noexcept;
    /// Takes the oldest frame. @pre front() was not empty
    void pop() noexcept;
    /// Gives the sender the bytes of what was taken.
    void release() noexcept;
    /// Whether the ring has made no sense since the last call.
    bool take_damaged() noexcept { return std::exchange(damaged_, false); }
    std::byte* ring() const noexcept { return ring_; }

 private:
    std::span<const std::uint8_t> read() noexcept;

    channel_state* state_ = nullptr;
    std::byte* ring_ = nullptr;
    std::uint64_t taken_ = 0;
    std::uint64_t produced_ = 0;    ///< as last read
    std::uint32_t front_bytes_ = 0; ///< of the record at taken_, after front()
    bool damaged_ = false;
};

} // namespace weftio::wires
