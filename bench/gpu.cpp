// gpu_bench: what a kernel on a GPU (or on any device) gets out of one engine thread, beside the floor of the machine.
//
//   gpu_bench -g cuda:0 [--seconds S] [--rounds N] [--json FILE]
#include "gpu.kernel.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(flag_echo, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(frame_round_trips, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(receive_all, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(send_all, "gpu.kernel.h");

namespace {

using clock_type = std::chrono::steady_clock;
constexpr std::uint32_t turns = 20000;

struct settings {
    std::string device = "cpu";
    double seconds = 0.5;
    int rounds = 5;
};

struct row {
    std::string what, unit;
    std::vector<double> values;

    double median()
    {
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
    }
};

std::uint64_t quantile(std::vector<std::uint64_t> values, double share)
{
    auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), at, values.end());
    return *at;
}

weftio::port_options busy_port()
{
    return {.idle = weftio::idle_policy::busy};
}

double flag_round_trip_ns(const weftio::device& device)
{
    auto words = device.allocate(4096, weftio::memory_kind::cpu_device);
    auto* ping = static_cast<std::uint32_t*>(words.cpu_address());
    auto* pong = ping + 64;
    auto kernel = device.launch(flag_echo_kernel, {}, ping, pong, turns);
    std::vector<std::uint64_t> times;
    for (std::uint32_t turn = 1; turn <= turns; ++turn) {
        auto begin = clock_type::now();
        weftio_store_release_sys_u32(ping, turn);
        while (weftio_load_acquire_sys_u32(pong) != turn && clock_type::now() - begin < std::chrono::seconds(10)) {
        }
        times.push_back(static_cast<std::uint64_t>((clock_type::now() - begin).count()));
    }
    kernel.wait_for(std::chrono::seconds(10));
    return static_cast<double>(quantile(times, 0.5));
}

double frame_round_trip_ns(const weftio::device& device)
{
    auto port = weftio::port::open("loopback", busy_port());
    weftio::eth_rxq rx(port, device, {.packets = 256, .verify_checksums = false});
    weftio::eth_txq tx(port, device, {.entries = 256});
    weftio::buf_arr frames(port, device, {.count = 256, .buffer_bytes = 64});
    weftio::flow all(port, {}, weftio::flow_action::to(rx));
    auto times = device.allocate(turns * sizeof(std::uint64_t), weftio::memory_kind::cpu_device);
    auto* first = static_cast<std::uint64_t*>(times.cpu_address());
    auto kernel = device.launch(frame_round_trips_kernel, {}, rx, tx, frames, turns, first);
    if (!kernel.wait_for(std::chrono::seconds(60)))
        return 0;
    return static_cast<double>(quantile({first, first + turns}, 0.5));
}

double receive_mpps(const weftio::device& device, const settings& settings, std::uint32_t bytes, std::uint32_t lanes)
{
    auto port = weftio::port::open(fmt::format("net_null_bench{},size={}", lanes + bytes * 10000, bytes), busy_port());
    weftio::eth_rxq rx(port, device, {.packets = 8192, .verify_checksums = false});
    auto memory = device.allocate(16384, weftio::memory_kind::cpu_device);
    auto* packets = static_cast<std::uint64_t*>(memory.cpu_address());
    auto kernel = device.launch(receive_all_kernel, {.blocks = 1, .lanes = lanes}, rx, packets, packets + 8);
    weftio::flow all(port, {}, weftio::flow_action::to(rx));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::uint64_t before = weftio_load_acquire_sys_u64(packets);
    auto begin = clock_type::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
    std::uint64_t after = weftio_load_acquire_sys_u64(packets);
    double seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));
    return static_cast<double>(after - before) / seconds / 1e6;
}

double send_mpps(const weftio::device& device, const settings& settings, std::uint32_t lanes)
{
    auto port = weftio::port::open("null", busy_port());
    weftio::eth_txq tx(port, device, {.entries = 8192});
    weftio::buf_arr frames(port, device, {.count = 8192, .buffer_bytes = 64});
    auto kernel = device.launch(send_all_kernel, {.blocks = 1, .lanes = lanes}, tx, frames);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::uint64_t before = tx.counters().sent;
    auto begin = clock_type::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
    std::uint64_t after = tx.counters().sent;
    double seconds = std::chrono::duration<double>(clock_type::now() - begin).count();
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));
    return static_cast<double>(after - before) / seconds / 1e6;
}

std::vector<row> measure(const settings& settings)
{
    auto device = weftio::device::open(settings.device);
    std::vector<row> rows{{"flag, host and back, p50", "ns", {}}, {"frame, kernel-engine-kernel, p50", "ns", {}}};
    std::vector<std::uint32_t> lanes{1, 32, 256, 1024};
    for (std::uint32_t bytes : {64u, 1472u})
        for (std::uint32_t lane : lanes)
            rows.push_back({fmt::format("receive {} B, {} lanes", bytes, lane), "Mpps", {}});
    for (std::uint32_t lane : lanes)
        rows.push_back({fmt::format("send 64 B weak, {} lanes", lane), "Mpps", {}});
    for (int round = 0; round < settings.rounds; ++round) {
        std::size_t at = 0;
        rows[at++].values.push_back(flag_round_trip_ns(device));
        rows[at++].values.push_back(frame_round_trip_ns(device));
        for (std::uint32_t bytes : {64u, 1472u})
            for (std::uint32_t lane : lanes)
                rows[at++].values.push_back(receive_mpps(device, settings, bytes, lane));
        for (std::uint32_t lane : lanes)
            rows[at++].values.push_back(send_mpps(device, settings, lane));
    }
    return rows;
}

void print(std::vector<row>& rows, const settings& settings, const std::string& json)
{
    fmt::print("{:<36} {:>10} {:>10} {:>10}  ({}, {} rounds)\n", "", "median", "min", "max", settings.device, settings.rounds);
    std::string text = "[";
    for (row& each : rows) {
        double median = each.median();
        fmt::print("{:<36} {:>10.1f} {:>10.1f} {:>10.1f}  {}\n", each.what, median, each.values.front(), each.values.back(), each.unit);
        text += fmt::format("{}\n  {{\"what\": \"{}\", \"unit\": \"{}\", \"median\": {:.3f}, \"min\": {:.3f}, \"max\": {:.3f}}}", text.size() > 1 ? "," : "",
                            each.what, each.unit, median, each.values.front(), each.values.back());
    }
    if (!json.empty())
        std::ofstream(json) << text << "\n]\n";
}

} // namespace

int main(int argc, char** argv)
{
    settings settings;
    std::string json;
    CLI::App app{"What a kernel gets out of one engine thread, beside the floor of the machine."};
    app.add_option("-g,--device", settings.device, "cpu, opencl, cuda:N")->capture_default_str();
    app.add_option("--seconds", settings.seconds, "of each rate measurement")->capture_default_str();
    app.add_option("--rounds", settings.rounds, "medians over so many")->capture_default_str()->check(CLI::Range(1, 100));
    app.add_option("--json", json, "write the table to FILE");
    CLI11_PARSE(app, argc, argv);
    try {
        auto rows = measure(settings);
        print(rows, settings, json);
        return 0;
    } catch (const weftio::error& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
}
