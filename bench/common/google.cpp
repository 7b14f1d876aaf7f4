// main() of the programs that use Google Benchmark: they measure in rounds and print the same table as other programs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/arguments.hpp"
#include "common/table.hpp"

namespace {

using namespace weftio;

struct options : bench::common_options {
    double seconds = 0.1;
    std::string only = ".";
};

/// Why a run has no figure; empty if it has one. Google Benchmark before 1.8 has other fields for this.
template <class Run>
std::string trouble(const Run& run)
{
    if constexpr (requires { run.error_occurred; })
        return run.error_occurred ? run.error_message : "";
    else
        return run.skipped ? run.skip_message : "";
}

/// Nanoseconds per packet, or per iteration of the loop if the benchmark counts no packets.
template <class Run>
double each_ns(const Run& run)
{
    auto each = run.counters.find("each");
    return each != run.counters.end()
               ? 1e9 * each->second.value
               : 1e9 * run.GetAdjustedRealTime() / benchmark::GetTimeUnitMultiplier(run.time_unit);
}

/// The name of a benchmark in the source, without the suffix for the clock that Google Benchmark adds.
std::string without_clock(std::string name)
{
    constexpr std::string_view clock = "/manual_time";
    return name.ends_with(clock) ? name.substr(0, name.size() - clock.size()) : name;
}

/// Collects the rounds of each benchmark in one figure.
class collector : public benchmark::BenchmarkReporter {
 public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override
    {
        bench::figure figure{.name = {}, .unit = "ns", .values = {}};
        std::pair<std::int64_t, std::int64_t> place;
        for (const Run& run : runs) {
            if (run.run_type != Run::RT_Iteration)
                continue;
            if (std::string why = trouble(run); !why.empty())
                throw std::runtime_error(
                    fmt::format("{}: {}: {}", program_invocation_short_name, run.benchmark_name(), why));
            figure.name = without_clock(run.benchmark_name());
            place = {run.family_index, run.per_family_instance_index};
            figure.values.push_back(each_ns(run));
        }
        if (!figure.values.empty())
            figures_.emplace(place, std::move(figure));
    }
    /// Rows in the order of the source; benchmarks may end in another order.
    bench::table table() const
    {
        bench::table table(program_invocation_short_name);
        for (const auto& [place, figure] : figures_)
            table.add(figure);
        return table;
    }

 private:
    std::map<std::pair<std::int64_t, std::int64_t>, bench::figure> figures_; ///< by position in the source
};

int measure(const options& wanted)
{
    std::vector<std::string> words{program_invocation_short_name, "--benchmark_filter=" + wanted.only,
                                   "--benchmark_enable_random_interleaving=true",
                                   fmt::format("--benchmark_repetitions={}", wanted.rounds),
                                   fmt::format("--benchmark_min_time={}", wanted.seconds)};
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    int count = static_cast<int>(arguments.size());
    benchmark::Initialize(&count, arguments.data());
    collector rows;
    std::ostringstream said_otherwise;
    rows.SetErrorStream(&said_otherwise);
    if (benchmark::RunSpecifiedBenchmarks(&rows) == 0) {
        fmt::print(stderr, "weftio: {}: --only {}: no row has this name; leave it out to see all\n",
                   program_invocation_short_name, wanted.only);
        return 2;
    }
    rows.table().finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    CLI::App app("Cost of one packet, in nanoseconds; bench/README.md describes each row");
    app.add_option("--only", wanted.only, "rows whose name matches this regular expression");
    app.add_option("--seconds", wanted.seconds, "time for each row in each round")
        ->check(CLI::Range(0.001, 3600.0))
        ->capture_default_str();
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return measure(wanted); });
}
