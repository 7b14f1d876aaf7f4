// Time on the host: UTC from the processor's cycle counter.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weftio::detail {

/// UTC in nanoseconds, read from the cycle counter in a few nanoseconds and steered towards CLOCK_REALTIME.
///
/// Continuous and monotonic: a difference is worked off by running up to 500 ppm faster or slower, never by a step,
/// also when somebody steps CLOCK_REALTIME, or slews it by thousands of ppm. Any thread may read; discipline() may be
/// called by any thread, one does the work.
class utc_clock {
 public:
    static constexpr const char* name = "utc";

    static utc_clock& instance();

    std::uint64_t now_ns() const noexcept { return at(ticks()); }
    /// For a mark on what has just been done: now_ns() without waiting until it has, so some tens of nanoseconds early.
    std::uint64_t stamp_ns() const noexcept { return at(ticks_at_once()); }
    /// Compares with CLOCK_REALTIME when the last time is long enough ago. Engines call it between turns.
    void discipline() noexcept;
    /// The pure servo: `real_ns` was seen at `ticks`, and `steady_ns` on CLOCK_MONOTONIC_RAW, which nobody steers. The
    /// rate that follows holds from `from` on, which is best a little ahead: readings that others have taken meanwhile
    /// then stay on the line. @pre `from` is not before that of the last call
    void steer(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns, std::uint64_t from) noexcept;
    std::uint64_t at(std::uint64_t ticks) const noexcept;
    static std::uint64_t ticks() noexcept;
    static std::uint64_t ticks_at_once() noexcept;

    /// @param ns_per_tick  first guess
    utc_clock(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns, double ns_per_tick) noexcept;

 private:
    /// now = base_ns + (ticks - base_ticks) * scale / 2^32, with the scale of before or after the base
    struct line {
        std::atomic<std::uint64_t> base_ticks{0}, base_ns{0}, scale_before{0}, scale{0};
    };

    void publish(std::uint64_t base_ticks, std::uint64_t base_ns, double ns_per_tick) noexcept;

    /// The line in force is lines_[sequence_ % 2]; the next one is written beside it. So nobody who reads ever waits
    /// for the thread that writes, which may have lost its core in the middle, perhaps to the reader.
    std::atomic<std::uint32_t> sequence_{0};
    std::array<line, 2> lines_;
    std::atomic<std::uint64_t> next_look_{0}; ///< in ticks
    std::atomic_flag steering_;
    std::uint64_t last_ticks_, last_real_ns_, last_steady_ns_; ///< the last comparison
    double natural_;                                           ///< nanoseconds a tick, as learnt
    double last_steady_ = 0; ///< steady nanoseconds a tick between the last two comparisons
};

/// UTC in nanoseconds. Any thread; does not block.
inline std::uint64_t utc_now_ns() noexcept
{
    return utc_clock::instance().now_ns();
}

/// As utc_clock::stamp_ns(). Any thread; does not block.
inline std::uint64_t utc_stamp_ns() noexcept
{
    return utc_clock::instance().stamp_ns();
}

} // namespace weftio::detail
