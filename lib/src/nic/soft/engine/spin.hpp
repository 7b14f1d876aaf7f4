// Decides whether an engine spins until a deadline that is near.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weftio::nic::soft {

/// Without it, a turn may begin just before a deadline and end long after it. The engine therefore spins when a
/// deadline is close, and the frames after that deadline leave only tens of nanoseconds late. Other queues wait during
/// a spin, so a turn has at most one spin, and while other queues or packets have work, all spins together get a
/// limited share of the time.
class spin {
 public:
    /// Spins get 1 / `share` of the time of a busy engine.
    static constexpr std::uint64_t share = 32;
    /// A deadline is near when it is at most two turns away; these bounds limit that distance.
    static constexpr std::uint64_t shortest_ns = 2000, longest_ns = 20000;

    /// Reports that a turn begins. The time since the previous turn began, or since its spin ended, is the length of
    /// that turn.
    void turn_began(std::uint64_t now_ns) noexcept
    {
        turn_ns_ = now_ns > ended_ns_ ? now_ns - ended_ns_ : 0;
        credit_ns_ = std::min(credit_ns_ + turn_ns_ / share, longest_ns);
        ended_ns_ = now_ns;
    }
    /// Whether to spin until `deadline_ns`. @param busy  other queues or packets have work
    bool begins(std::uint64_t deadline_ns, std::uint64_t now_ns, bool busy) noexcept
    {
        const std::uint64_t takes_ns = deadline_ns - now_ns;
        if (takes_ns > std::clamp(2 * turn_ns_, shortest_ns, longest_ns) || (busy && takes_ns > credit_ns_))
            return false;
        credit_ns_ -= busy ? takes_ns : 0;
        return true;
    }
    void ended(std::uint64_t now_ns) noexcept { ended_ns_ = now_ns; }

 private:
    std::uint64_t turn_ns_ = 0;  ///< length of the last turn, without its spin
    std::uint64_t ended_ns_ = 0; ///< when the last turn began, or when its spin ended
    /// time that spins may still take while others are busy
    std::uint64_t credit_ns_ = 0;
};

} // namespace weftio::nic::soft
