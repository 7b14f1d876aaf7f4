// Answers that a responder owes, in the order of their sequence numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net/roce_rules.hpp"
#include "roce/pooled_ring.hpp"
#include "roce/remote_memory.hpp"

namespace weftio::roce {

struct answer {
    enum class kind : std::uint8_t { acknowledge, atomic, read };

    kind what = kind::acknowledge;
    std::uint8_t syndrome = net::no_credits; ///< of an acknowledge: ACK, NAK or RNR NAK
    bool fresh = false;                      ///< a READ or atomic that is not a repeat
    std::uint32_t psn = 0;                   ///< of the request; a READ takes one PSN per response packet
    std::uint32_t msn = 0;
    std::uint32_t sent = 0;     ///< response packets of a READ already sent
    remote_range range{};       ///< the whole range of a READ
    std::uint64_t original = 0; ///< of an atomic: the value before the operation
};

/// Holds a limited number of READs and atomics; consecutive ACKs are coalesced. A single ACK needs no memory from the
/// pool. An answer that finds no memory is dropped: the peer repeats an unanswered request.
class answer_queue {
 public:
    /// Capacity for repeated READs and atomics, in addition to that for fresh ones.
    static constexpr std::uint32_t repeats = 4;

    /// @param most_fresh  limit of READs and atomics that are not repeats
    answer_queue(std::uint32_t most_fresh, block_pool& pool) noexcept : most_reads_(most_fresh + repeats), ring_(pool)
    {}

    /// Raises the limit to `most_fresh`. A lower value changes nothing.
    void allow(std::uint32_t most_fresh) noexcept { most_reads_ = std::max(most_reads_, most_fresh + repeats); }
    bool empty() const noexcept { return first_ == end_; }
    std::size_t size() const noexcept { return end_ - first_; }
    answer& front() noexcept { return at(first_); }
    void pop() noexcept;
    void clear() noexcept
    {
        first_ = end_;
        fresh_ = reads_ = 0;
    }
    /// If no answer waits, returns the memory to the pool until the next READ or atomic comes.
    void rest() noexcept
    {
        if (empty())
            ring_.release();
    }

    /// READs and atomics that wait for their answer, without repeats.
    std::uint32_t fresh() const noexcept { return fresh_; }
    /// Makes room for one more READ or atomic and for one acknowledge after it.
    /// @return false: the limit is reached, or there is no memory
    bool make_room() noexcept;
    /// Adds a READ or an atomic. @return false: as make_room()
    bool add(const answer& more) noexcept;
    /// Removes every answer whose last PSN is `psn` or later: the peer has gone back to `psn` and repeats those
    /// requests.
    void cut(std::uint32_t psn, std::uint32_t path_mtu) noexcept;
    /// Adds an acknowledge. It replaces an acknowledge at the end of the queue, unless that is a NAK for a later
    /// packet.
    void acknowledge(const answer& more) noexcept;

 private:
    static constexpr std::uint32_t least = 4;

    void count_out(const answer& gone) noexcept;
    answer& at(std::uint32_t number) noexcept { return ring_.capacity() == 0 ? alone_ : ring_[number]; }

    std::uint32_t most_reads_;
    answer alone_; ///< the only answer, an acknowledge, while the ring has no memory
    pooled_ring<answer, least> ring_;
    std::uint32_t first_ = 0, end_ = 0; ///< numbers of answers, free-running
    std::uint32_t fresh_ = 0, reads_ = 0;
};

inline bool answer_queue::make_room() noexcept
{
    const bool is_alone = ring_.capacity() == 0;
    if (reads_ == most_reads_ || !ring_.reserve(end_ - first_ + 2, first_, end_))
        return false;
    if (is_alone && !empty())
        ring_[first_] = alone_;
    return true;
}

inline bool answer_queue::add(const answer& more) noexcept
{
    if (!make_room())
        return false;
    ++reads_;
    fresh_ += more.fresh;
    ring_[end_++] = more;
    return true;
}

inline void answer_queue::acknowledge(const answer& more) noexcept
{
    if (!empty()) {
        answer& last = at(end_ - 1);
        if (last.what == answer::kind::acknowledge) {
            // The NAK also acknowledges all packets before its PSN. An ACK for one of those would replace it.
            const bool hides =
                net::kind_of(last.syndrome) != net::aeth_kind::acknowledge && net::psn_distance(last.psn, more.psn) < 0;
            if (!hides)
                last = more;
            return;
        }
    }
    at(end_++) = more;
}

inline void answer_queue::pop() noexcept
{
    count_out(front());
    ++first_;
}

inline void answer_queue::cut(std::uint32_t psn, std::uint32_t path_mtu) noexcept
{
    for (; !empty(); --end_) {
        const answer& last = at(end_ - 1);
        const std::uint32_t packets = last.what == answer::kind::read ? net::packets_of(last.range.bytes, path_mtu) : 1;
        if (net::psn_distance(psn, net::psn_add(last.psn, packets)) <= 0)
            return;
        count_out(last);
    }
}

inline void answer_queue::count_out(const answer& gone) noexcept
{
    if (gone.what == answer::kind::acknowledge)
        return;
    --reads_;
    fresh_ -= gone.fresh;
}

} // namespace weftio::roce
