#include "report/observer.hpp"

#include <algorithm>

namespace weftio::replay {

void timing::observe(std::uint64_t planned_ns, std::uint64_t sent_ns, std::uint64_t late_after_ns)
{
    std::uint64_t error_ns = sent_ns > planned_ns ? sent_ns - planned_ns : 0;
    errors.record(error_ns);
    late += error_ns > late_after_ns;
    early += sent_ns < planned_ns;
    if (first_sent_ns == 0) {
        first_planned_ns = planned_ns;
        first_sent_ns = sent_ns;
    }
    last_planned_ns = planned_ns;
    last_sent_ns = sent_ns;
}

std::int64_t timing::drift_ns() const noexcept
{
    return static_cast<std::int64_t>(last_sent_ns - last_planned_ns);
}

void error_series::observe(std::uint64_t offset_ns, std::uint64_t error_ns)
{
    while (offset_ns / column_ns_ >= most_columns)
        halve();
    auto at = static_cast<std::size_t>(offset_ns / column_ns_);
    if (columns_.size() <= at)
        columns_.resize(at + 1);
    column& into = columns_[at];
    into.min_ns = into.count == 0 ? error_ns : std::min(into.min_ns, error_ns);
    into.max_ns = std::max(into.max_ns, error_ns);
    into.sum_ns += error_ns;
    ++into.count;
}

void error_series::halve()
{
    std::size_t kept = (columns_.size() + 1) / 2;
    for (std::size_t at = 0; at < kept; ++at) {
        column both = columns_[2 * at];
        if (2 * at + 1 < columns_.size() && columns_[2 * at + 1].count != 0) {
            const column& second = columns_[2 * at + 1];
            both.min_ns = both.count == 0 ? second.min_ns : std::min(both.min_ns, second.min_ns);
            both.max_ns = std::max(both.max_ns, second.max_ns);
            both.sum_ns += second.sum_ns;
            both.count += second.count;
        }
        columns_[at] = both;
    }
    columns_.resize(kept);
    column_ns_ *= 2;
}

void observer::observe(std::size_t file, std::uint64_t planned_ns, std::uint64_t sent_ns)
{
    total_.observe(planned_ns, sent_ns, late_after_ns_);
    files_[file].observe(planned_ns, sent_ns, late_after_ns_);
    series_.observe(planned_ns - total_.first_planned_ns, sent_ns > planned_ns ? sent_ns - planned_ns : 0);
}

} // namespace weftio::replay
