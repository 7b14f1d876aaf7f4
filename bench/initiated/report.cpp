#include "initiated/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace weftio::bench {

namespace {

bool less_is_better(const std::string& unit)
{
    return unit == "us";
}

std::string digits(double value)
{
    return fmt::format("{:.{}f}", value, value >= 100 ? 1 : value >= 1 ? 2 : 4);
}

} // namespace

void report::begin(std::string title, std::string unit, const std::vector<column>& columns)
{
    title_ = std::move(title);
    unit_ = std::move(unit);
    columns_ = columns;
    fmt::print("\n{}, {}, median (best)\n{:<12}", title_, unit_, "");
    for (const column& each : columns_)
        fmt::print(" {:>18}", each.name);
    fmt::print(" {:>8}\n", "gain");
}

void report::add(const std::string& row, const std::vector<std::vector<double>>& values)
{
    const bool less = less_is_better(unit_);
    double best[2] = {0, 0};
    fmt::print("{:<12}", row);
    for (std::size_t at = 0; at < columns_.size(); ++at) {
        const double middle = median(values[at]);
        const auto [low, high] = std::minmax_element(values[at].begin(), values[at].end());
        double& side = best[columns_[at].who == poster::kernel ? 0 : 1];
        side = side == 0 ? middle : less ? std::min(side, middle) : std::max(side, middle);
        fmt::print(" {:>18}", fmt::format("{} ({})", digits(middle), digits(less ? *low : *high)));
        figures_.add(
            {.name = fmt::format("{}, {}: {}", title_, row, columns_[at].name), .unit = unit_, .values = values[at]});
    }
    if (best[0] > 0 && best[1] > 0)
        fmt::print(" {:>8.2f}", less ? best[1] / best[0] : best[0] / best[1]);
    fmt::print("\n");
    std::fflush(stdout);
}

void report::save() const
{
    if (path_.empty())
        return;
    std::ofstream file(path_);
    file << figures_.json() << std::flush;
    if (!file)
        throw std::runtime_error(
            fmt::format("initiated_bench: --json: {} cannot be written; name a file that can be created", path_));
}

} // namespace weftio::bench
