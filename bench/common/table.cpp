#include "common/table.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <thread>

#include "report/json.hpp"

namespace weftio::bench {

namespace {

/// The goals of bench/goals.json; CMake generates their text.
constexpr goal goals[] = {
#include "goals.inc"
    {"", "", ""}};

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

bool less_is_better(std::string_view unit)
{
    constexpr std::array units{"ns", "us", "ms", "s", "bytes", "MiB", "MiB an hour", "frames", "waits"};
    return std::find(units.begin(), units.end(), unit) != units.end();
}

std::string_view goal_of(std::string_view program, std::string_view name)
{
    for (const goal& each : goals)
        if (each.program == program && each.name == name)
            return each.text;
    return {};
}

std::string processor()
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name"))
            return line.substr(std::min(line.find(':') + 2, line.size()));
    return "unknown processor";
}

/// Three significant digits: 0.0123, 9.87, 123.
std::string digits(double value)
{
    if (std::isnan(value))
        return "-";
    return std::abs(value) < 1 ? fmt::format("{:.3f}", value)
                               : fmt::format("{:.{}f}", value, std::abs(value) < 100 ? 2 : 0);
}

std::string ratio_words(const summary& sum)
{
    return std::isnan(sum.ratio)
               ? "-"
               : fmt::format("{} ({}-{})", digits(sum.ratio), digits(sum.least_ratio), digits(sum.most_ratio));
}

std::string goal_words(const summary& sum)
{
    return sum.goal.empty() ? "" : fmt::format("{}: {}", sum.goal, sum.met ? "met" : "NOT MET");
}

} // namespace

double median(std::vector<double> values)
{
    std::sort(values.begin(), values.end());
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

bool is_met(std::string_view text, double value, double ratio)
{
    char of[8] = "", way[3] = "";
    double limit = 0;
    int read = 0;
    const std::string words(text);
    if (std::sscanf(words.c_str(), "%7s %2s %lf%n", of, way, &limit, &read) != 3 ||
        static_cast<std::size_t>(read) != words.size() ||
        (std::string_view(of) != "ratio" && std::string_view(of) != "value") ||
        (std::string_view(way) != ">=" && std::string_view(way) != "<="))
        throw std::runtime_error(fmt::format(
            "weftio: bench/goals.json: \"{}\" is not a goal; write it as \"ratio >= 0.9\" or \"value <= 20\"", text));
    const double is = std::string_view(of) == "ratio" ? ratio : value;
    return std::string_view(way) == ">=" ? is >= limit : is <= limit;
}

std::string machine_words()
{
    utsname system{};
    uname(&system);
    double load = 0;
    if (getloadavg(&load, 1) != 1)
        load = 0;
    const std::time_t now = std::time(nullptr);
    std::array<char, 16> date{};
    std::strftime(date.data(), date.size(), "%Y-%m-%d", std::gmtime(&now));
    return fmt::format("{} cores, {}, Linux {}, {}, load {:.2f}", std::thread::hardware_concurrency(), processor(),
                       system.release, date.data(), load);
}

void table::add(figure figure)
{
    const bool are_numbers =
        std::all_of(figure.values.begin(), figure.values.end(), [](double value) { return std::isfinite(value); });
    const bench::figure* peer = find(figure.peer);
    if (figure.values.empty() || !are_numbers)
        throw std::runtime_error(fmt::format("{}: {} was not measured", program_, figure.name));
    if (!figure.peer.empty() && (!peer || peer->values.size() != figure.values.size()))
        throw std::runtime_error(
            fmt::format("{}: {} has no rounds to compare with {}", program_, figure.name, figure.peer));
    figures_.push_back(std::move(figure));
}

void table::leave_out(std::string name, std::string why)
{
    left_out_.emplace_back(std::move(name), std::move(why));
}

const figure* table::find(std::string_view name) const
{
    auto found = std::find_if(figures_.begin(), figures_.end(), [&](const figure& each) { return each.name == name; });
    return found == figures_.end() ? nullptr : &*found;
}

summary table::sum_up(const figure& figure) const
{
    const auto [low, high] = std::minmax_element(figure.values.begin(), figure.values.end());
    const bool less = less_is_better(figure.unit);
    summary sum{.value = median(figure.values),
                .best = less ? *low : *high,
                .worst = less ? *high : *low,
                .ratio = unknown,
                .least_ratio = unknown,
                .most_ratio = unknown,
                .goal = goal_of(program_, figure.name)};
    if (const bench::figure* peer = find(figure.peer)) {
        std::vector<double> pairs;
        for (std::size_t round = 0; round < figure.values.size(); ++round)
            pairs.push_back(figure.values[round] / peer->values[round]);
        sum.ratio = median(pairs);
        sum.least_ratio = *std::min_element(pairs.begin(), pairs.end());
        sum.most_ratio = *std::max_element(pairs.begin(), pairs.end());
    }
    sum.met = !sum.goal.empty() && is_met(sum.goal, sum.value, sum.ratio);
    return sum;
}

void table::print() const
{
    if (figures_.empty() && left_out_.empty())
        return;
    fmt::print("{}\n{:<50} {:>10} {:>10} {:>10} {:<6} {:>6}  {:<22} {}\n", machine_words(), program_, "median", "best",
               "worst", "unit", "rounds", "ratio to its peer", "goal");
    for (const figure& each : figures_) {
        const summary sum = sum_up(each);
        fmt::print("{:<50} {:>10} {:>10} {:>10} {:<6} {:>6}  {:<22} {}\n", each.name, digits(sum.value),
                   digits(sum.best), digits(sum.worst), each.unit, each.values.size(), ratio_words(sum),
                   goal_words(sum));
    }
    for (const auto& [name, why] : left_out_)
        fmt::print("{:<50} {:>10} {:>10} {:>10} {:<6} {:>6}  {:<22} {}\n", name, "-", "-", "-", "-", "-", "-", why);
    print_goals();
}

void table::print_goals() const
{
    unsigned all = 0, met = 0;
    std::string missed;
    for (const figure& each : figures_) {
        const summary sum = sum_up(each);
        all += !sum.goal.empty();
        met += sum.met;
        if (!sum.goal.empty() && !sum.met)
            missed += (missed.empty() ? "; not met: " : ", ") + each.name;
    }
    if (all != 0)
        fmt::print("{} of {} goals met{}\n", met, all, missed);
    if (!left_out_.empty())
        fmt::print("{} rows not measured\n", left_out_.size());
}

std::string table::json() const
{
    replay::json_writer out;
    const std::string machine = machine_words();
    auto text_or_null = [&out](std::string_view name, std::string_view text) {
        text.empty() ? out.null(name) : out.value(name, text);
    };
    out.begin_object();
    out.value("schema", 1);
    out.value("program", program_);
    out.begin_array("rows");
    for (const figure& each : figures_) {
        const summary sum = sum_up(each);
        out.begin_object();
        out.value("name", each.name);
        out.value("value", sum.value);
        out.value("unit", each.unit);
        out.value("low", std::min(sum.best, sum.worst));
        out.value("high", std::max(sum.best, sum.worst));
        out.value("rounds", each.values.size());
        text_or_null("peer", each.peer);
        out.value("ratio", sum.ratio); // null without a peer
        text_or_null("goal", sum.goal);
        sum.goal.empty() ? out.null("met") : out.value("met", sum.met);
        out.value("machine", machine);
        out.end_object();
    }
    out.end_array();
    out.end_object();
    return out.text();
}

void table::finish(const std::string& path) const
{
    print();
    if (path.empty())
        return;
    std::ofstream file(path);
    file << json() << std::flush;
    if (!file)
        throw std::runtime_error(
            fmt::format("{}: --json: {} cannot be written; name a file that can be created", program_, path));
}

} // namespace weftio::bench
