#include "soak/watch.hpp"

#include <fmt/format.h>

#include <numeric>
#include <span>

#include "machine.hpp"

namespace weftio::bench {

namespace {

double mean(std::span<const std::uint64_t> values)
{
    return values.empty() ? 0
                          : static_cast<double>(std::accumulate(values.begin(), values.end(), std::uint64_t{0})) /
                                static_cast<double>(values.size());
}

} // namespace

void soak_watch::sample(const counters& now)
{
    for (std::size_t at = 0; at < last_.size(); ++at)
        if (now[at].second < last_[at].second)
            went_back_ += fmt::format("{}{} from {} to {}", went_back_.empty() ? "" : ", ", now[at].first,
                                      last_[at].second, now[at].second);
    last_ = now;
    if (resident_.capacity() == resident_.size())
        resident_.reserve(resident_.size() + 100'000); // for a day, so that this vector does not grow meanwhile
    resident_.push_back(bench::resident_bytes());
}

double soak_watch::growth_bytes() const
{
    std::span<const std::uint64_t> all(resident_);
    std::size_t tenth = all.size() / 10;
    return tenth == 0 ? 0 : mean(all.last(tenth)) - mean(all.subspan(tenth, tenth));
}

double soak_watch::bytes_per_sample() const
{
    std::span<const std::uint64_t> steady = std::span(resident_).subspan(resident_.size() / 10);
    double middle = static_cast<double>(steady.size() - 1) / 2, level = mean(steady), above = 0, below = 0;
    for (std::size_t at = 0; at < steady.size(); ++at) {
        double distance = static_cast<double>(at) - middle;
        above += distance * (static_cast<double>(steady[at]) - level);
        below += distance * distance;
    }
    return below > 0 ? above / below : 0;
}

} // namespace weftio::bench
