// gpu_bench: what kernels on a GPU (or on any device) get out of engine threads, beside the floors of the machine.
//
//   gpu_bench -g cuda:0 [--seconds S] [--rounds N] [--json FILE]
#include <fmt/format.h>

#include <algorithm>
#include <CLI/CLI.hpp>
#include <fstream>
#include <map>

#include "gpu/measure.hpp"

namespace {

using namespace weftio::bench;

/// The same number of every round.
struct row {
    std::string what, unit;
    std::vector<double> values;
};

using part = std::vector<sample> (*)(const weftio::device&, const settings&);
const std::map<std::string, part> parts{
    {"1-hand-over", hand_over}, {"2-baseline", without_queues}, {"3-receive", receive_rates}, {"4-send", send_rates}};

std::vector<sample> one_round(const weftio::device& device, const settings& settings)
{
    std::vector<sample> all;
    for (const auto& [name, measure] : parts) {
        if (!settings.only.empty() && name.find(settings.only) == std::string::npos)
            continue;
        auto part = measure(device, settings);
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

std::vector<row> measure(const settings& settings, int rounds)
{
    auto device = weftio::device::open(settings.device);
    std::vector<row> rows;
    for (int round = 0; round < rounds; ++round) {
        std::size_t at = 0;
        for (sample& each : one_round(device, settings)) {
            if (round == 0)
                rows.push_back({each.what, each.unit, {}});
            rows[at++].values.push_back(each.value);
        }
    }
    for (row& each : rows)
        std::sort(each.values.begin(), each.values.end());
    return rows;
}

void print(const std::vector<row>& rows, const std::string& device, const std::string& json)
{
    fmt::print("{:<46} {:>10} {:>10} {:>10}  ({}, {} rounds)\n", "", "median", "min", "max", device,
               rows.front().values.size());
    std::string text = "[";
    for (const row& each : rows) {
        double median = each.values[each.values.size() / 2], least = each.values.front(), most = each.values.back();
        fmt::print("{:<46} {:>10.1f} {:>10.1f} {:>10.1f}  {}\n", each.what, median, least, most, each.unit);
        text += fmt::format(
            "{}\n  {{\"what\": \"{}\", \"unit\": \"{}\", \"median\": {:.3f}, \"min\": {:.3f}, \"max\": {:.3f}}}",
            text.size() > 1 ? "," : "", each.what, each.unit, median, least, most);
    }
    if (!json.empty())
        std::ofstream(json) << text << "\n]\n";
}

} // namespace

int main(int argc, char** argv)
{
    settings settings;
    int rounds = 5;
    std::string json;
    CLI::App app{"What kernels get out of engine threads, beside the floors of the machine."};
    app.add_option("-g,--device", settings.device, "cpu, opencl, cuda:N")->capture_default_str();
    app.add_option("--seconds", settings.seconds, "of each rate")->capture_default_str();
    app.add_option("--engines", settings.engines,
                   "engine threads where several run; twice as many for the longest packets")
        ->capture_default_str();
    app.add_option("--only", settings.only, "one part")
        ->check(CLI::IsMember({"hand-over", "baseline", "receive", "send"}));
    app.add_option("--rounds", rounds, "medians over so many")->capture_default_str()->check(CLI::Range(1, 100));
    app.add_option("--json", json, "write the table to FILE");
    CLI11_PARSE(app, argc, argv);
    try {
        print(measure(settings, rounds), settings.device, json);
        return 0;
    } catch (const weftio::error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
