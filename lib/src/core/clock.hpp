// Time on the host: UTC from the processor's cycle counter.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace weftio::core {

/// UTC in nanoseconds, read from the cycle counter in a few nanoseconds and steered towards CLOCK_REALTIME.
///
/// Continuous and monotonic: an offset is corrected by running up to 500 ppm faster or slower, never by a step, also
/// when CLOCK_REALTIME is stepped or slewed by thousands of ppm. Only after the machine was suspended, the clock
/// continues at CLOCK_REALTIME, because the cycle counter may have stood still or begun at 0. Any thread may read. Any
/// thread may call discipline(); if several do at once, one does the work.
class utc_clock {
 public:
    static constexpr const char* name = "utc";

    static utc_clock& instance();

    std::uint64_t now_ns() const noexcept { return at(ticks()); }
    /// Unserialized TSC read; may be tens of ns early.
    std::uint64_t stamp_ns() const noexcept { return at(ticks_at_once()); }
    /// Compares with CLOCK_REALTIME, about every 20 ms. Engines call it between iterations.
    void discipline() noexcept;
    /// The servo without its clocks: `real_ns` (CLOCK_REALTIME) and `steady_ns` (CLOCK_MONOTONIC_RAW, which nothing
    /// steers) were read at `ticks`. The new rate takes effect at `from`, which should lie slightly in the future, so
    /// that readings taken until then stay valid.
    /// @pre `from` is not before that of the last call
    void steer(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns, std::uint64_t from) noexcept;
    /// The machine was suspended: from `ticks` on, continues at `real_ns`, or where it stands if that is later.
    void resume(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns) noexcept;
    std::uint64_t at(std::uint64_t ticks) const noexcept;
    static std::uint64_t ticks() noexcept;
    static std::uint64_t ticks_at_once() noexcept;

    /// @param ns_per_tick  first guess
    utc_clock(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns, double ns_per_tick) noexcept;

 private:
    /// now = base_ns + (ticks - base_ticks) * scale / 2^32; scale_before replaces scale for ticks before the base.
    struct line {
        std::atomic<std::uint64_t> base_ticks{0}, base_ns{0}, scale_before{0}, scale{0};
    };

    void publish(std::uint64_t base_ticks, std::uint64_t base_ns, double ns_per_tick) noexcept;

    /// lines_[sequence_ % 2] is in force; the writer fills the other one. So readers never wait for the writer, which
    /// may be preempted in the middle.
    std::atomic<std::uint32_t> sequence_{0};
    std::array<line, 2> lines_;
    std::atomic<std::uint64_t> next_discipline_{0}; ///< when discipline() compares next, in ticks
    std::atomic_flag steering_;
    std::uint64_t last_ticks_, last_real_ns_, last_steady_ns_; ///< values of the last comparison
    double natural_;                                           ///< estimated nanoseconds per tick, before correction
    std::int64_t suspended_ns_; ///< how long the machine has been suspended since it was booted, as last compared
    double last_steady_ = 0;    ///< CLOCK_MONOTONIC_RAW ns per tick between the last two comparisons
};

/// UTC in nanoseconds. Any thread; never blocks.
inline std::uint64_t utc_now_ns() noexcept
{
    return utc_clock::instance().now_ns();
}

/// utc_clock::stamp_ns() of the process's clock. Any thread; never blocks.
inline std::uint64_t utc_stamp_ns() noexcept
{
    return utc_clock::instance().stamp_ns();
}

} // namespace weftio::core
