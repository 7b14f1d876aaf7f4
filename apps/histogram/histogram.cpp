#include "histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weftio::apps {

namespace {

constexpr unsigned step_bits = 5;
constexpr std::size_t buckets = (64 - step_bits + 1) << step_bits;

std::size_t bucket_of(std::uint64_t value)
{
    if (value < (std::uint64_t{1} << step_bits))
        return static_cast<std::size_t>(value);
    auto octave = static_cast<unsigned>(std::bit_width(value)) - 1 - step_bits;
    return (static_cast<std::size_t>(octave) << step_bits) + static_cast<std::size_t>(value >> octave);
}

std::uint64_t upper_edge(std::size_t bucket)
{
    if (bucket < (std::size_t{2} << step_bits))
        return bucket;
    auto octave = (bucket >> step_bits) - 1;
    auto mantissa = (bucket & ((std::size_t{1} << step_bits) - 1)) + (std::size_t{1} << step_bits);
    return ((static_cast<std::uint64_t>(mantissa) + 1) << octave) - 1;
}

} // namespace

void histogram::record(std::uint64_t value_ns, std::uint64_t count)
{
    if (records_.empty())
        records_.resize(buckets);
    records_[bucket_of(value_ns)] += count;
    count_ += count;
    max_ = std::max(max_, value_ns);
}

std::uint64_t histogram::quantile_ns(double share) const noexcept
{
    return value_at_rank_ns(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_))));
}

std::uint64_t histogram::value_at_rank_ns(std::uint64_t rank) const noexcept
{
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < records_.size(); ++bucket)
        if (seen += records_[bucket]; seen >= rank && seen > 0)
            return std::min(upper_edge(bucket), max_);
    return max_;
}

void histogram::add(const histogram& other)
{
    if (records_.empty())
        records_ = other.records_;
    else
        for (std::size_t bucket = 0; bucket < other.records_.size(); ++bucket)
            records_[bucket] += other.records_[bucket];
    count_ += other.count_;
    max_ = std::max(max_, other.max_);
}

} // namespace weftio::apps
