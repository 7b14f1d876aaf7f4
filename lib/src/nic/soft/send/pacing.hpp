// Pacing: how long a wait holds a queue, and how late the frames after it were sent.
#pragma once

#include <array>
#include <cstdint>

#include "core/counter.hpp"

namespace weftio::nic::soft {

/// Distribution of lateness in nanoseconds. It has 32 steps for each octave, so a quantile is within 3 %. One thread
/// writes.
class lateness {
 public:
    void record(std::uint64_t late_ns) noexcept;
    std::uint64_t count() const noexcept { return count_.value(); }
    std::uint64_t max_ns() const noexcept { return max_.value(); }
    /// The value that a share (0..1) of the records does not exceed; 0 without records. Any thread.
    std::uint64_t quantile_ns(double share) const noexcept;

 private:
    static constexpr unsigned step_bits = 5;
    static constexpr std::size_t buckets = (64 - step_bits + 1) << step_bits;

    static std::size_t bucket_of(std::uint64_t value) noexcept;
    static std::uint64_t upper_edge(std::size_t bucket) noexcept;

    std::array<core::counter, buckets> records_;
    core::counter count_, max_;
};

/// The deadlines of one queue: what a wait entry does (docs/formats.md, "Waiting"). The thread of the engine calls it;
/// any thread may read the counters.
class pacing {
 public:
    explicit pacing(std::uint64_t horizon_ns) : horizon_ns_(horizon_ns) {}

    /// Begins a wait. Returns false when the deadline is beyond the horizon. Otherwise the wait holds the queue until
    /// the deadline; a deadline in the past does not hold it.
    bool begin(std::uint64_t deadline_ns, std::uint64_t now_ns) noexcept;
    bool holding() const noexcept { return holding_; }
    std::uint64_t deadline_ns() const noexcept { return deadline_ns_; }
    /// Ends the wait: the clock has reached the deadline.
    void end() noexcept { holding_ = false; }
    /// Whether the next frames to be handed over are the first after a wait.
    bool wants_hand_over() const noexcept { return unreported_; }
    /// Records how late the frames after a wait are handed over.
    void handed_over(std::uint64_t now_ns) noexcept;
    /// Clears the wait: hardware pacing keeps its deadline, or the wait is given up.
    void leave() noexcept { holding_ = unreported_ = false; }
    /// Forgets all deadlines, because the queue starts again.
    void forget() noexcept
    {
        leave();
        deadline_ns_ = 0;
    }

    core::counter past_errors, future_errors, order_errors; ///< tx_pp_timestamp_*_errors
    lateness error;                                         ///< time of hand-over minus deadline

 private:
    std::uint64_t horizon_ns_;
    std::uint64_t deadline_ns_ = 0;
    bool holding_ = false;
    bool unreported_ = false; ///< a wait has begun, and the frames after it have not been handed over
};

} // namespace weftio::nic::soft
