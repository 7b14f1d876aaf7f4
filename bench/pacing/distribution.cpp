#include "pacing/distribution.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace weftio::bench {

namespace {

/// Quantile `share` of the sorted values.
std::uint64_t quantile(const std::vector<std::uint64_t>& sorted, double share)
{
    auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return sorted[std::max<std::size_t>(rank, 1) - 1];
}

} // namespace

row summarize(std::string name, std::vector<std::int64_t> late_ns)
{
    row result{.name = std::move(name)};
    if (late_ns.empty()) {
        result.knows_early = result.knows_drift = false;
        return result;
    }
    result.frames = late_ns.size();
    result.end_drift_ns = late_ns.back();
    std::vector<std::uint64_t> distances;
    for (std::int64_t late : late_ns) {
        result.early += late < 0;
        distances.push_back(static_cast<std::uint64_t>(std::abs(late)));
    }
    std::sort(distances.begin(), distances.end());
    result.p50_ns = quantile(distances, 0.5);
    result.p99_ns = quantile(distances, 0.99);
    result.p999_ns = quantile(distances, 0.999);
    result.max_ns = distances.back();
    return result;
}

} // namespace weftio::bench
