// Whether an engine waits on the spot for a deadline that is near.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weftio::nic {

/// A turn may begin just before a deadline and end long after it, so close to one the engine spins: the frames then go
/// tens of nanoseconds late. Others wait meanwhile. So there is one spin a turn at most, and beside queues or packets
/// that are busy all spins together get a share of the time.
class spin {
 public:
    /// The share that spins get of a busy engine's time: 1 / this.
    static constexpr std::uint64_t share = 32;
    /// Two turns ahead of a deadline is near, within these bounds.
    static constexpr std::uint64_t shortest_ns = 2000, longest_ns = 20000;

    /// A turn begins; the last one ended its spin, or began, at the time that ended() was told.
    void turn_began(std::uint64_t now_ns) noexcept
    {
        turn_ns_ = now_ns > ended_ns_ ? now_ns - ended_ns_ : 0;
        credit_ns_ = std::min(credit_ns_ + turn_ns_ / share, longest_ns);
        ended_ns_ = now_ns;
    }
    /// Whether to spin until `deadline_ns`. @param busy  others have something to do
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
    std::uint64_t turn_ns_ = 0;  ///< how long the last turn took, without its spin
    std::uint64_t ended_ns_ = 0; ///< when it began, or its spin ended
    std::uint64_t credit_ns_ = 0;
};

} // namespace weftio::nic
