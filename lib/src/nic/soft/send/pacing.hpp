// When the frames behind a wait go, and how well that was kept.
#pragma once

#include <array>
#include <cstdint>

#include "core/counter.hpp"

namespace weftio::nic {

/// Distribution of how late something was, in nanoseconds: 32 steps an octave, so a quantile is within 3 %. One writer.
class lateness {
 public:
    void record(std::uint64_t late_ns) noexcept;
    std::uint64_t count() const noexcept { return count_.value(); }
    std::uint64_t max_ns() const noexcept { return max_.value(); }
    /// The value that `share` (0..1) of the records do not exceed; 0 without records. Any thread.
    std::uint64_t quantile_ns(double share) const noexcept;

 private:
    static constexpr unsigned step_bits = 5;
    static constexpr std::size_t buckets = (64 - step_bits + 1) << step_bits;

    static std::size_t bucket_of(std::uint64_t value) noexcept;
    static std::uint64_t upper_edge(std::size_t bucket) noexcept;

    std::array<detail::counter, buckets> records_;
    detail::counter count_, max_;
};

/// The deadlines of one queue: what a wait entry does. The engine's thread; counters from anywhere.
class pacing {
 public:
    explicit pacing(std::uint64_t horizon_ns) : horizon_ns_(horizon_ns) {}

    /// A wait entry is reached. Returns false when its deadline is beyond the horizon; otherwise the queue holds until
    /// then, or not at all when it is in the past.
    bool begin(std::uint64_t deadline_ns, std::uint64_t now_ns) noexcept;
    bool holding() const noexcept { return holding_; }
    std::uint64_t deadline_ns() const noexcept { return deadline_ns_; }
    /// The clock has reached the deadline.
    void end() noexcept { holding_ = false; }
    /// Whether the next frames to be handed to the port are the first behind a wait.
    bool wants_hand_over() const noexcept { return unreported_; }
    /// They are handed to it now.
    void handed_over(std::uint64_t now_ns) noexcept;
    /// Somebody else keeps this deadline: hardware.
    void leave() noexcept { holding_ = unreported_ = false; }
    /// The queue starts again.
    void forget() noexcept
    {
        leave();
        deadline_ns_ = 0;
    }

    detail::counter past_errors, future_errors, order_errors; ///< tx_pp_timestamp_*_errors
    lateness error;                                           ///< hand-over minus deadline

 private:
    std::uint64_t horizon_ns_;
    std::uint64_t deadline_ns_ = 0;
    bool holding_ = false;
    bool unreported_ = false; ///< a deadline has been reached, its frames have not been handed over
};

} // namespace weftio::nic
