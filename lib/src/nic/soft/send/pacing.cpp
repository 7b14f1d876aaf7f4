#include "nic/soft/send/pacing.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weftio::nic::soft {

std::size_t lateness::bucket_of(std::uint64_t value) noexcept
{
    if (value < (std::uint64_t{1} << step_bits))
        return static_cast<std::size_t>(value);
    auto octave = static_cast<unsigned>(std::bit_width(value)) - 1 - step_bits; // shift that leaves step_bits + 1 bits
    return (static_cast<std::size_t>(octave) << step_bits) + static_cast<std::size_t>(value >> octave);
}

std::uint64_t lateness::upper_edge(std::size_t bucket) noexcept
{
    if (bucket < (std::size_t{2} << step_bits))
        return bucket;
    auto octave = (bucket >> step_bits) - 1;
    auto mantissa = (bucket & ((std::size_t{1} << step_bits) - 1)) + (std::size_t{1} << step_bits);
    return ((static_cast<std::uint64_t>(mantissa) + 1) << octave) - 1;
}

void lateness::record(std::uint64_t late_ns) noexcept
{
    records_[bucket_of(late_ns)].add(1);
    count_.add(1);
    if (late_ns > max_.value())
        max_.add(late_ns - max_.value());
}

std::uint64_t lateness::quantile_ns(double share) const noexcept
{
    auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count())));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < buckets; ++bucket)
        if (seen += records_[bucket].value(); seen >= wanted && seen > 0)
            return std::min(upper_edge(bucket), max_ns());
    return max_ns();
}

bool pacing::begin(std::uint64_t deadline_ns, std::uint64_t now_ns) noexcept
{
    if (deadline_ns > now_ns && deadline_ns - now_ns > horizon_ns_) {
        future_errors.add(1);
        return false;
    }
    if (deadline_ns < deadline_ns_)
        order_errors.add(1);
    if (deadline_ns <= now_ns)
        past_errors.add(1);
    deadline_ns_ = deadline_ns;
    holding_ = deadline_ns > now_ns;
    unreported_ = true;
    return true;
}

void pacing::handed_over(std::uint64_t now_ns) noexcept
{
    if (!unreported_)
        return;
    unreported_ = false;
    // The clock as read on another core may be slightly behind.
    error.record(now_ns > deadline_ns_ ? now_ns - deadline_ns_ : 0);
}

} // namespace weftio::nic::soft
