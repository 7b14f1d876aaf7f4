#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/bench.hpp"

namespace weftio::files {

namespace {

/// A quantile of the latencies; a rank between two operations is rounded down.
std::uint64_t latency_ns(const bench_run& run, double share)
{
    return run.latency.value_at_rank_ns(static_cast<std::uint64_t>(share * static_cast<double>(run.latency.count())));
}

/// "uring 1200, posix 3": the ways of a run, and the reasons why operations fell.
std::string ways_of(const file_counters& counters)
{
    std::string text;
    for (std::size_t way = 0; way < counters.ways.size(); ++way)
        if (const std::uint64_t count = counters.ways[way].operations(); count != 0)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(static_cast<file_way>(way)), count);
    for (std::size_t fall = 1; fall < counters.falls.size(); ++fall)
        if (counters.falls[fall] != 0)
            text += fmt::format(", fallback ({}) {}", to_string(static_cast<file_fall>(fall)), counters.falls[fall]);
    return text;
}

double us(std::uint64_t ns)
{
    return static_cast<double>(ns) / 1e3;
}

nlohmann::ordered_json counts_of(const file_counters& counters)
{
    nlohmann::ordered_json made{{"ways", nlohmann::ordered_json::object()},
                                {"falls", nlohmann::ordered_json::object()}};
    for (std::size_t way = 0; way < counters.ways.size(); ++way)
        made["ways"][to_string(static_cast<file_way>(way))] = counters.ways[way].operations();
    for (std::size_t fall = 0; fall < counters.falls.size(); ++fall)
        made["falls"][to_string(static_cast<file_fall>(fall))] = counters.falls[fall];
    return made;
}

const char* name_of(bench_options::load what)
{
    return what == bench_options::load::read ? "read" : what == bench_options::load::write ? "write" : "mixed";
}

double bytes_per_second(const bench_run& run)
{
    return run.seconds > 0 ? static_cast<double>(run.bytes) / run.seconds : 0;
}

/// How fast the run is for each byte that fio moves with the same size; none: fio has moved nothing.
std::optional<double> of_fio(const bench_run& run, const std::vector<bench_run>& all)
{
    for (const bench_run& each : all)
        if (each.how == "fio" && each.size == run.size && each.bytes != 0)
            return bytes_per_second(run) / bytes_per_second(each);
    return std::nullopt;
}

} // namespace

std::string to_table(const std::vector<bench_run>& runs)
{
    const bool fio = std::any_of(runs.begin(), runs.end(), [](const bench_run& run) { return run.how == "fio"; });
    std::string text = fmt::format("{:14}{:>10}{:>12}{:>12}{}{:>10}{:>10}{:>10}  {}\n", "", "bytes", "MiB/s", "ops/s",
                                   fio ? "  x of fio" : "", "p50 us", "p99 us", "max us", "ways");
    for (const bench_run& run : runs) {
        const std::optional<double> ratio = of_fio(run, runs);
        const std::string beside = !fio ? "" : ratio ? fmt::format("{:>10.2f}", *ratio) : fmt::format("{:>10}", "-");
        text += fmt::format("{:14}{:>10}{:>12.1f}{:>12.0f}{}{:>10.1f}{:>10.1f}{:>10.1f}  {}\n", run.how, run.size,
                            bytes_per_second(run) / (1 << 20),
                            run.seconds > 0 ? static_cast<double>(run.operations) / run.seconds : 0, beside,
                            us(latency_ns(run, 0.5)), us(latency_ns(run, 0.99)), us(run.latency.max_ns()),
                            ways_of(run.counters));
        if (!run.complaint.empty())
            text += fmt::format("  {} errors, {} wrong: {}\n", run.errors, run.wrong, run.complaint);
    }
    return text;
}

std::string to_json(const bench_options& options, const std::vector<bench_run>& runs)
{
    nlohmann::ordered_json made{{"load", name_of(options.what)},
                                {"random", options.random},
                                {"direct", options.direct},
                                {"verify", options.verify},
                                {"workers", options.workers},
                                {"file_bytes", runs.empty() ? 0 : runs.front().file_bytes},
                                {"rounds", options.rounds},
                                {"device", options.device},
                                {"runs", nlohmann::ordered_json::array()}};
    for (const bench_run& run : runs) {
        nlohmann::ordered_json one{{"how", run.how},
                                   {"bytes_each", run.size},
                                   {"operations", run.operations},
                                   {"bytes", run.bytes},
                                   {"seconds", run.seconds},
                                   {"bytes_per_second", bytes_per_second(run)},
                                   {"p50_ns", latency_ns(run, 0.5)},
                                   {"p99_ns", latency_ns(run, 0.99)},
                                   {"max_ns", run.latency.max_ns()},
                                   {"errors", run.errors},
                                   {"wrong", run.wrong},
                                   {"complaint", run.complaint}};
        if (const std::optional<double> ratio = of_fio(run, runs))
            one["of_fio"] = *ratio;
        one["progress"] = run.progress;
        if (run.how == "weftio")
            one.update(counts_of(run.counters));
        made["runs"].push_back(std::move(one));
    }
    return made.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

} // namespace weftio::files
