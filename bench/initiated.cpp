// initiated_bench: communication that kernels initiate, compared with CPU proxies that post the same entries for them.
//
//   initiated_bench                                 CPU workers as kernels
//   initiated_bench -g cuda:0 --json FILE           kernels on a GPU
//   initiated_bench --only rate --engines 1,8       one part, with one engine and with eight
//   initiated_bench -g cuda:0 --peer cuda:1 --only all-to-all,transposition     half of the ends on each of two GPUs
//
// Each engine is a port of its own with a thread; both ends of a queue pair are at one port. All columns of a row
// alternate.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "initiated/measure.hpp"
#include "initiated/report.hpp"

namespace {

using namespace weftio::bench;

struct part {
    std::string_view name;
    bool stream; ///< or an exchange
    void (*measure)(const initiated_settings&, fabric&, report&);
};
constexpr std::array parts{part{"rate", true, rate_by_queues}, part{"bandwidth", true, bandwidth_by_size},
                           part{"all-to-all", false, all_to_all_in_all},
                           part{"all-to-all-64", false, all_to_all_a_pair},
                           part{"transposition", false, transpositions}};

bool measures(const initiated_settings& settings, std::string_view part)
{
    return settings.only.empty() || std::ranges::find(settings.only, part) != settings.only.end();
}

void measure_with(std::span<const weftio::device> devices, const initiated_settings& settings, std::uint32_t engines,
                  report& report)
{
    fabric fabric(devices, settings.over == "wire" ? path::wire : path::loopback, engines,
                  std::max(bytes_of_streams(settings), bytes_of_exchanges(settings)),
                  settings.payload == "device" ? weftio::memory_kind::device : weftio::memory_kind::cpu_device,
                  settings.mtu);
    const initiated_cores& cores = fabric.cores();
    if (cores.engines.empty())
        fmt::print("\n{}; too few cores for these, {} proxies and the rest: threads share cores, and times say "
                   "little\n",
                   fabric.engines(), fabric::most_proxies);
    else
        fmt::print("\n{}, on cores {}; proxies on cores {}\n", fabric.engines(), fmt::join(cores.engines, ","),
                   fmt::join(cores.proxies, ","));
    for (const part& each : parts)
        if (measures(settings, each.name)) {
            each.measure(settings, fabric, report);
            report.save();
        }
}

/// @throws weftio::error errc::invalid_argument parts that are to be measured cannot be with these options
void check(const initiated_settings& settings)
{
    const auto any = [&](auto&& wanted) {
        return std::ranges::any_of(parts,
                                   [&](const part& each) { return measures(settings, each.name) && wanted(each); });
    };
    if (settings.payload == "device" && any([](const part& each) { return !each.stream; }))
        throw weftio::error(weftio::errc::invalid_argument,
                            "--payload device: only streams have it; add --only rate,bandwidth");
    if (!settings.peer.empty() && settings.payload != "device" && any([](const part& each) { return each.stream; }))
        throw weftio::error(weftio::errc::invalid_argument,
                            "--peer: a stream goes from memory of one device to memory of the other; add --payload "
                            "device, or --only all-to-all,all-to-all-64,transposition");
}

int measure(const initiated_settings& settings, const std::string& path)
{
    check(settings);
    std::vector devices{weftio::device::open(settings.device)};
    if (!settings.peer.empty())
        devices.push_back(weftio::device::open(settings.peer));
    report report(path);
    std::string names;
    for (const weftio::device& each : devices)
        names += (names.empty() ? "" : " and ") + each.name();
    fmt::print("{}\nkernels on {}; batches of {}, {} rounds of {} s\n", machine_words(), names, settings.batch,
               settings.rounds, settings.seconds);
    for (const std::uint32_t engines : settings.engines)
        measure_with(devices, settings, engines, report);
    return 0;
}

void add_options(CLI::App& app, initiated_settings& settings, common_options& wanted)
{
    auto add = [&app](const char* name, auto& value, const char* what) {
        return app.add_option(name, value, what)->capture_default_str();
    };
    auto add_list = [&add](const char* name, std::vector<std::uint32_t>& values, const char* what, std::uint32_t most) {
        add(name, values, what)->delimiter(',')->check(CLI::Range(1u, most));
    };
    add("-g,--device", settings.device, "cpu, opencl, cuda:N");
    add("--peer", settings.peer, "a second device: half of the ends of an exchange are there, and what streams write");
    add("--seconds", settings.seconds, "length of the measurement of each figure in each round")
        ->check(CLI::Range(0.001, 60.0));
    add("--over", settings.over,
        "what joins the ends of queue pairs: one port, or two ports and a wire in shared memory")
        ->check(CLI::IsMember({"loopback", "wire"}));
    add("--payload", settings.payload,
        "memory of the bytes that travel: cpu_device, or device, which engines read and write by copy engines")
        ->check(CLI::IsMember({"cpu_device", "device"}));
    add("--mtu", settings.mtu, "path MTU of the queue pairs, in bytes")
        ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
    add_list("--engines", settings.engines, "engine threads: the tables are measured with each of these numbers", 32);
    add_list("--queues", settings.queues, "queue pairs of the rows of rates", 512);
    add_list("--sizes", settings.sizes, "bytes of the rows of bandwidths", 1u << 20);
    add_list("--proxies", settings.proxies, "threads of the proxies, each a column", fabric::most_proxies);
    add("--ends", settings.ends, "ends of all-to-all and transposition: 2, 4, 8 or 16")
        ->delimiter(',')
        ->check(CLI::IsMember({2, 4, 8, 16}));
    add("--size-queues", settings.size_queues, "queue pairs of the rows of bandwidths")->check(CLI::Range(1u, 512u));
    add("--batch", settings.batch, "messages of one commit; fewer where they are long")->check(CLI::Range(1u, 128u));
    std::vector<std::string> names;
    for (const part& each : parts)
        names.emplace_back(each.name);
    add("--only", settings.only, "these parts")->delimiter(',')->check(CLI::IsMember(names));
    add_rounds(app, wanted);
    add_json(app, wanted);
}

} // namespace

int main(int argc, char** argv)
{
    initiated_settings settings;
    common_options wanted;
    wanted.rounds = settings.rounds;
    CLI::App app{"Rates of RDMA WRITEs that kernels post, compared with CPU proxies that post them for kernels."};
    add_options(app, settings, wanted);
    if (auto status = read_words(app, argc, argv))
        return *status;
    settings.rounds = wanted.rounds;
    return ending([&] { return measure(settings, wanted.json); });
}
