#include "core/clock.hpp"

#include "weftio/clock.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace weftio::core {

namespace {

constexpr double longest_slew = 500e-6;
constexpr double believable_drift = 2000e-6; ///< beyond it: a step or slew of CLOCK_REALTIME, or a bad first guess
constexpr double same_slope = 100e-6;
constexpr double correction_ns = 500e6; ///< an offset is corrected over this time
constexpr double discipline_period_ns = 20e6;
constexpr std::int64_t shortest_suspension_ns = 200'000'000;
/// More ticks than lie between two comparisons. A counter that is further behind the next one has begun at 0 again.
constexpr std::uint64_t counter_restarted = std::uint64_t{1} << 32;
constexpr double ahead_ns = 1e6;                     ///< a new rate is published this long before it takes effect
constexpr std::uint64_t calibration_ns = 10'000'000; ///< two samples, each within 50 ns on a quiet machine: 10 ppm

std::uint64_t read_ns(clockid_t clock) noexcept
{
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<std::uint64_t>(now.tv_nsec);
}

/// How long the machine has been suspended since it was booted: what CLOCK_MONOTONIC leaves out. Never too much; too
/// little if the thread is preempted between the two readings.
std::int64_t suspended_ns() noexcept
{
    const std::uint64_t with = read_ns(CLOCK_BOOTTIME);
    return static_cast<std::int64_t>(with - read_ns(CLOCK_MONOTONIC));
}

struct sample {
    std::uint64_t ticks, real_ns, steady_ns, doubt;
};

/// Samples the system's clocks and the cycle counter together; of several attempts the one that took the fewest ticks.
sample take_sample(int attempts = 4) noexcept
{
    sample best{0, 0, 0, ~std::uint64_t{0}};
    for (int attempt = 0; attempt < attempts; ++attempt) {
        std::uint64_t before = utc_clock::ticks();
        std::uint64_t real_ns = read_ns(CLOCK_REALTIME);
        std::uint64_t steady_ns = read_ns(CLOCK_MONOTONIC_RAW);
        std::uint64_t after = utc_clock::ticks();
        if (after - before < best.doubt)
            best = {before + (after - before) / 2, real_ns, steady_ns, after - before};
    }
    return best;
}

utc_clock calibrated()
{
    constexpr int attempts = 32;
    sample first = take_sample(attempts), last = first;
    while (last.steady_ns - first.steady_ns < calibration_ns)
        last = take_sample(attempts);
    double slope =
        static_cast<double>(last.steady_ns - first.steady_ns) / static_cast<double>(last.ticks - first.ticks);
    return {last.ticks, last.real_ns, last.steady_ns, slope};
}

} // namespace

utc_clock& utc_clock::instance()
{
    static utc_clock clock = calibrated();
    return clock;
}

std::uint64_t utc_clock::ticks() noexcept
{
#if defined(__x86_64__)
    _mm_lfence(); // with RDTSC as RDTSCP, which some hypervisors hide: Valgrind does not know it there
    return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t value;
    asm volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
#else
    return read_ns(CLOCK_MONOTONIC_RAW);
#endif
}

std::uint64_t utc_clock::ticks_at_once() noexcept
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return ticks();
#endif
}

utc_clock::utc_clock(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns, double ns_per_tick) noexcept
    : last_ticks_(ticks), last_real_ns_(real_ns), last_steady_ns_(steady_ns), natural_(ns_per_tick),
      suspended_ns_(suspended_ns())
{
    publish(ticks, real_ns, ns_per_tick);
    line& first = lines_[sequence_.load() % 2];
    first.scale_before.store(first.scale.load());
}

std::uint64_t utc_clock::at(std::uint64_t ticks) const noexcept
{
    for (;;) {
        std::uint32_t before = sequence_.load(std::memory_order_acquire);
        const line& now = lines_[before % 2];
        std::uint64_t base_ticks = now.base_ticks.load(std::memory_order_acquire);
        std::uint64_t base_ns = now.base_ns.load(std::memory_order_acquire);
        std::uint64_t scale_before = now.scale_before.load(std::memory_order_acquire);
        std::uint64_t scale = now.scale.load(std::memory_order_acquire);
        if (before != sequence_.load(std::memory_order_relaxed)) // the writer may have reused this line
            continue;
        auto since = static_cast<std::int64_t>(ticks - base_ticks);
        auto passed = static_cast<__int128>(since) * static_cast<__int128>(since < 0 ? scale_before : scale);
        return base_ns + static_cast<std::uint64_t>(static_cast<std::int64_t>(passed >> 32));
    }
}

void utc_clock::publish(std::uint64_t base_ticks, std::uint64_t base_ns, double ns_per_tick) noexcept
{
    std::uint32_t next = sequence_.load(std::memory_order_relaxed) + 1;
    line& made = lines_[next % 2];
    made.base_ticks.store(base_ticks, std::memory_order_release);
    made.base_ns.store(base_ns, std::memory_order_release);
    made.scale_before.store(lines_[(next - 1) % 2].scale.load(std::memory_order_relaxed), std::memory_order_release);
    made.scale.store(static_cast<std::uint64_t>(ns_per_tick * 4294967296.0), std::memory_order_release);
    sequence_.store(next, std::memory_order_release);
    next_discipline_.store(base_ticks + static_cast<std::uint64_t>(discipline_period_ns / ns_per_tick),
                           std::memory_order_relaxed);
}

void utc_clock::discipline() noexcept
{
    const std::uint64_t left = next_discipline_.load(std::memory_order_relaxed) - ticks();
    if ((left != 0 && left < counter_restarted) || steering_.test_and_set(std::memory_order_acquire))
        return;
    const sample now = take_sample();
    if (const std::int64_t suspended = suspended_ns(); suspended > suspended_ns_ + shortest_suspension_ns) {
        suspended_ns_ = suspended;
        resume(now.ticks, now.real_ns, now.steady_ns);
    } else {
        steer(now.ticks, now.real_ns, now.steady_ns, ticks() + static_cast<std::uint64_t>(ahead_ns / natural_));
    }
    steering_.clear(std::memory_order_release);
}

void utc_clock::resume(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns) noexcept
{
    last_ticks_ = ticks;
    last_real_ns_ = real_ns;
    last_steady_ns_ = steady_ns;
    last_steady_ = 0;
    const line& now = lines_[sequence_.load(std::memory_order_relaxed) % 2];
    const std::uint64_t base_ticks = now.base_ticks.load(std::memory_order_relaxed);
    // If the counter has begun at 0 again, what was read last is unknown: two comparisons after the base at most.
    const std::uint64_t stands_ns = ticks >= base_ticks ? at(ticks)
                                                        : now.base_ns.load(std::memory_order_relaxed) +
                                                              2 * static_cast<std::uint64_t>(discipline_period_ns);
    publish(ticks, std::max(real_ns, stands_ns), natural_);
}

void utc_clock::steer(std::uint64_t ticks, std::uint64_t real_ns, std::uint64_t steady_ns, std::uint64_t from) noexcept
{
    auto passed_ticks = static_cast<double>(ticks - last_ticks_);
    auto passed_ns = static_cast<double>(static_cast<std::int64_t>(real_ns - last_real_ns_));
    double slope = passed_ns / passed_ticks;
    double steady = static_cast<double>(steady_ns - last_steady_ns_) / passed_ticks,
           steady_before = std::exchange(last_steady_, steady);
    if (std::abs(slope / natural_ - 1) < believable_drift)
        natural_ += (slope - natural_) * std::min(1.0, passed_ns / 1e9); // low-pass filter of about a second
    else if (std::abs(steady / natural_ - 1) >= believable_drift && std::abs(steady / steady_before - 1) < same_slope)
        natural_ = steady; // two equal rates in a row are no disturbed sample: the first guess was wrong
    last_ticks_ = ticks;
    last_real_ns_ = real_ns;
    last_steady_ns_ = steady_ns;

    auto behind_ns = static_cast<double>(static_cast<std::int64_t>(real_ns - at(ticks)));
    double slew = std::clamp(behind_ns / correction_ns, -longest_slew, longest_slew);
    publish(from, at(from), natural_ * (1 + slew));
}

} // namespace weftio::core

std::uint64_t weftio::utc_now_ns() noexcept
{
    auto& clock = core::utc_clock::instance();
    clock.discipline();
    return clock.now_ns();
}
