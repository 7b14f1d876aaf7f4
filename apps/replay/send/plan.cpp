#include "send/plan.hpp"

#include <algorithm>
#include <limits>

namespace weftio::replay {

namespace {

constexpr std::uint64_t end_of_time_ns = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t clock_step_ns = 1'000'000'000; ///< a step back of more than this means that the clock was set
constexpr long double ns_per_s = 1e9L;

/// @pre 0 <= value
std::uint64_t rounded(long double value)
{
    return value >= static_cast<long double>(end_of_time_ns) ? end_of_time_ns
                                                             : static_cast<std::uint64_t>(value + 0.5L);
}

/// later - earlier, which may not fit 64 signed bits. @pre later >= earlier
std::uint64_t difference(std::int64_t later, std::int64_t earlier)
{
    return static_cast<std::uint64_t>(later) - static_cast<std::uint64_t>(earlier);
}

} // namespace

std::uint64_t plan::next(std::int64_t time_ns, bool has_time, std::uint32_t bytes)
{
    std::uint64_t offset_ns = 0;
    switch (options_.by) {
        case pace::capture:
            if (has_time)
                advance(time_ns);
            offset_ns = options_.multiplier == 1 ? elapsed_ns_
                                                 : rounded(static_cast<long double>(elapsed_ns_) / options_.multiplier);
            break;
        case pace::frames:
            offset_ns = rounded(static_cast<long double>(frames_) * ns_per_s / options_.per_second);
            break;
        case pace::bits:
            offset_ns = rounded(static_cast<long double>(bytes_) * 8 * ns_per_s / options_.per_second);
            break;
        case pace::top_speed: break;
    }
    ++frames_;
    bytes_ += bytes;
    return offset_ns;
}

void plan::advance(std::int64_t time_ns)
{
    if (!started_) {
        started_ = true;
        latest_ns_ = time_ns;
        return;
    }
    if (time_ns < latest_ns_) {
        ++out_of_order_;
        if (difference(latest_ns_, time_ns) > clock_step_ns)
            latest_ns_ = time_ns;
        return;
    }
    std::uint64_t gap_ns = difference(time_ns, latest_ns_);
    if (options_.max_gap_ns != 0)
        gap_ns = std::min(gap_ns, rounded(static_cast<long double>(options_.max_gap_ns) * options_.multiplier));
    elapsed_ns_ = gap_ns > end_of_time_ns - elapsed_ns_ ? end_of_time_ns : elapsed_ns_ + gap_ns;
    latest_ns_ = time_ns;
}

} // namespace weftio::replay
