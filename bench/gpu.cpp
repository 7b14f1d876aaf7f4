// gpu_bench: rates and latencies of kernels on a GPU (or any device) with engine threads, and the limits of the
// machine.
//
//   gpu_bench -g cuda:0 [--peer cuda:1] [--seconds S] [--rounds N] [--json FILE]
//   gpu_bench --topology
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "gpu/measure.hpp"
#include "gpu/topology.hpp"

namespace {

using namespace weftio::bench;

std::vector<sample> one_round(const weftio::device& device, const settings& settings)
{
    std::vector<sample> all;
    for (const part& each : parts) {
        if (!settings.only.empty() && each.name != settings.only)
            continue;
        auto part = each.measure(device, settings);
        all.insert(all.end(), part.begin(), part.end());
    }
    return all;
}

int measure(const settings& settings, const common_options& wanted)
{
    auto device = weftio::device::open(settings.device);
    std::vector<figure> figures;
    for (unsigned round = 0; round < wanted.rounds; ++round) {
        std::size_t at = 0;
        for (const sample& each : one_round(device, settings)) {
            if (round == 0)
                figures.push_back({.name = each.what, .unit = each.unit, .values = {}, .peer = each.peer});
            figures[at++].values.push_back(each.value);
        }
    }
    table table("gpu_bench");
    for (figure& each : figures)
        table.add(std::move(each));
    fmt::print("kernels on {} ({})\n", settings.device, device.name());
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    bool topology = false;
    std::string root = "/";
    settings settings;
    common_options wanted;
    CLI::App app{"Rates that kernels reach with engine threads, compared with the limits of the machine."};
    auto add = [&app](const char* name, auto& value, const char* what) {
        return app.add_option(name, value, what)->capture_default_str();
    };
    add("-g,--device", settings.device, "cpu, opencl, cuda:N");
    add("--peer", settings.peer, "a second device, for round trips between kernels of both: cuda:N");
    add("--seconds", settings.seconds, "length of the measurement of each rate")->check(CLI::Range(0.001, 3600.0));
    add("--engines", settings.engines, "engine threads for rows with several; twice as many for the longest packets")
        ->check(CLI::Range(1, 32));
    app.add_option("--only", settings.only, "one part")
        ->check(CLI::IsMember({"hand-over", "baseline", "receive", "send", "posting", "registrations", "peer"}));
    app.add_flag("--topology", topology,
                 "no rates: how far each GPU is from the others, ports and cores, and what slows them down");
    add("--root", root, "with --topology: a folder with the sys and proc of another machine");
    add_rounds(app, wanted);
    add_json(app, wanted);
    if (auto status = read_words(app, argc, argv))
        return *status;
    return ending([&] {
        if (!topology)
            return measure(settings, wanted);
        fmt::print("{}", describe_machine(root));
        return 0;
    });
}
