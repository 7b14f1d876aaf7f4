// Messages in flight: what a requester keeps for each entry from its first packet to its completion.
#pragma once

#include <cstdint>

#include "net/roce_rules.hpp"
#include "roce/pooled_ring.hpp"
#include "roce/send_entries.hpp"

namespace weftio::roce {

/// Messages by free-running number: those in [first, end) are in flight. The ring grows as needed, and keeps its memory
/// until rest().
class message_ring {
 public:
    static constexpr std::uint32_t least = 8, most = 128;

    explicit message_ring(block_pool& pool) noexcept : ring_(pool) {}

    std::uint32_t first() const noexcept { return first_; }
    std::uint32_t end() const noexcept { return end_; }
    bool empty() const noexcept { return first_ == end_; }
    /// Whether one more message does not fit: `most` are in flight, or there is no memory.
    bool full() const noexcept { return end_ - first_ == ring_.capacity(); }
    /// Makes room for one more message. Invalidates references to messages. @return false: full()
    bool make_room() noexcept
    {
        const std::uint32_t count = end_ - first_;
        return !full() || (count != most && ring_.reserve(count + 1, first_, end_));
    }
    message& oldest() noexcept { return ring_[first_]; }
    /// @pre first <= number < end
    message& at(std::uint32_t number) noexcept { return ring_[number]; }
    void pop() noexcept { ++first_; }
    /// If no message is in flight, returns the memory to the pool until the next message.
    void rest() noexcept
    {
        if (empty())
            ring_.release();
    }
    /// The message that add() appends; empty. @pre !full()
    message& draft() noexcept { return ring_[end_] = message{}; }
    /// Appends the draft, and fills in the fields that count earlier messages. Makes room for the next message, so that
    /// full() is right.
    void add() noexcept
    {
        message& more = ring_[end_];
        more.first_psn = next_psn_;
        more.packets_before = packets_;
        more.reads_before = reads_;
        next_psn_ = net::psn_add(next_psn_, more.packets);
        packets_ += more.request_packets();
        reads_ += more.wants_result();
        ++end_;
        make_room();
    }

    /// The counters before message `number`, which may be end().
    std::uint32_t packets_before(std::uint32_t number) noexcept
    {
        return number == end_ ? packets_ : at(number).packets_before;
    }
    std::uint32_t reads_before(std::uint32_t number) noexcept
    {
        return number == end_ ? reads_ : at(number).reads_before;
    }
    std::uint32_t psn_before(std::uint32_t number) noexcept
    {
        return number == end_ ? next_psn_ : at(number).first_psn;
    }
    void begin_at(std::uint32_t psn) noexcept { next_psn_ = psn & net::psn_mask; }

 private:
    pooled_ring<message, least> ring_;
    std::uint32_t first_ = 0, end_ = 0;
    std::uint32_t next_psn_ = 0, packets_ = 0, reads_ = 0;
};

} // namespace weftio::roce
