#include "pacing/distribution.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace weftio::bench {

namespace {

std::string duration(double ns)
{
    if (std::abs(ns) < 1e3)
        return fmt::format("{:.0f} ns", ns);
    if (std::abs(ns) < 1e6)
        return fmt::format("{:.2f} us", ns / 1e3);
    return fmt::format("{:.2f} ms", ns / 1e6);
}

template <class Number>
std::string duration(Number ns)
{
    return duration(static_cast<double>(ns));
}

/// The value that `share` of the sorted values do not exceed.
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

std::string row_heading()
{
    return fmt::format("{:36} {:>8} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}", "late by", "frames", "early", "p50",
                       "p99", "p99.9", "max", "end drift");
}

std::string row_text(const row& row)
{
    return fmt::format("{:36} {:>8} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10}", row.name, row.frames,
                       row.knows_early ? std::to_string(row.early) : "-", duration(row.p50_ns), duration(row.p99_ns),
                       duration(row.p999_ns), duration(row.max_ns), row.knows_drift ? duration(row.end_drift_ns) : "-");
}

std::string row_json(const row& row)
{
    std::string early = row.knows_early ? std::to_string(row.early) : "null";
    std::string drift = row.knows_drift ? std::to_string(row.end_drift_ns) : "null";
    return fmt::format(
        R"({{"name": "{}", "frames": {}, "early": {}, "p50_ns": {}, "p99_ns": {}, "p999_ns": {}, "max_ns": {}, )"
        R"("end_drift_ns": {}}})",
        row.name, row.frames, early, row.p50_ns, row.p99_ns, row.p999_ns, row.max_ns, drift);
}

} // namespace weftio::bench
