// Answers that a responder owes, in the order of their sequence numbers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "net/roce_rules.hpp"
#include "roce/remote_memory.hpp"

namespace weftio::roce {

struct answer {
    enum class kind : std::uint8_t { acknowledge, atomic, read };

    kind what = kind::acknowledge;
    std::uint8_t syndrome = net::no_credits; ///< of an acknowledge: ACK, NAK or RNR NAK
    bool fresh = false;                      ///< a READ or atomic that is not a repeat
    std::uint32_t psn = 0;                   ///< of the request; a READ has as many as packets
    std::uint32_t msn = 0;
    std::uint32_t sent = 0;     ///< packets of a READ that have gone
    remote_range range{};       ///< all of a READ
    std::uint64_t original = 0; ///< of an atomic: the value before it
};

/// A ring of fixed size. READs and atomics are limited, and consecutive ACKs are coalesced. An answer that does not fit
/// is dropped: the peer repeats a request without an answer.
class answer_queue {
 public:
    /// Room for repeated READs and atomics, beside that for fresh ones.
    static constexpr std::uint32_t repeats = 4;

    /// @param most_fresh  READs and atomics
    explicit answer_queue(std::uint32_t most_fresh)
        : most_reads_(most_fresh + repeats), ring_(std::size_t{2} * most_reads_ + 1)
    {}

    /// Takes more READs and atomics than before; it never takes fewer.
    void make_room(std::uint32_t most_fresh);
    bool empty() const noexcept { return count_ == 0; }
    std::size_t size() const noexcept { return count_; }
    answer& front() noexcept { return ring_[first_]; }
    void pop() noexcept;
    void clear() noexcept { first_ = count_ = fresh_ = reads_ = 0; }

    /// READs and atomics, not repeats, that wait for their answer.
    std::uint32_t fresh() const noexcept { return fresh_; }
    bool has_room() const noexcept { return reads_ != most_reads_; }
    /// Adds a READ or an atomic. @return false: there are too many
    bool add(const answer& more) noexcept;
    /// Adds an acknowledge. One that is the last in the queue gives way to it, unless it is a NAK for a later packet.
    void acknowledge(const answer& more) noexcept;

 private:
    void put(const answer& more) noexcept;

    std::uint32_t most_reads_;
    std::vector<answer> ring_;
    std::size_t first_ = 0, count_ = 0;
    std::uint32_t fresh_ = 0, reads_ = 0;
};

inline void answer_queue::make_room(std::uint32_t most_fresh)
{
    if (most_fresh + repeats <= most_reads_)
        return;
    std::vector<answer> wider(std::size_t{2} * (most_fresh + repeats) + 1);
    for (std::size_t at = 0; at != count_; ++at)
        wider[at] = ring_[(first_ + at) % ring_.size()];
    ring_ = std::move(wider);
    first_ = 0;
    most_reads_ = most_fresh + repeats;
}

inline void answer_queue::put(const answer& more) noexcept
{
    ring_[(first_ + count_) % ring_.size()] = more;
    ++count_;
}

inline bool answer_queue::add(const answer& more) noexcept
{
    if (!has_room())
        return false;
    ++reads_;
    fresh_ += more.fresh;
    put(more);
    return true;
}

inline void answer_queue::acknowledge(const answer& more) noexcept
{
    if (count_ != 0) {
        answer& last = ring_[(first_ + count_ - 1) % ring_.size()];
        if (last.what == answer::kind::acknowledge) {
            // A NAK acknowledges all packets before its own; an ACK of those would only hide it.
            const bool hides =
                net::kind_of(last.syndrome) != net::aeth_kind::acknowledge && net::psn_distance(last.psn, more.psn) < 0;
            if (!hides)
                last = more;
            return;
        }
    }
    put(more);
}

inline void answer_queue::pop() noexcept
{
    if (front().what != answer::kind::acknowledge) {
        --reads_;
        fresh_ -= front().fresh;
    }
    first_ = (first_ + 1) % ring_.size();
    --count_;
}

} // namespace weftio::roce
