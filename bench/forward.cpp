// Packets per second that a kernel forwards, receives, checks or sends on one port. bench/versus compares it with
// testpmd.
//
//   ./forward_bench                                        net_null, 64 bytes, inline mode: one core for all
//   ./forward_bench --port net_null0,size=64,copy=1 --do check    the driver writes, and the kernel reads, every byte
//   ./forward_bench --port iface:eth0 --do receive --mode thread --cores 0,1
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "forward.kernel.h"
#include "machine.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(forward, "forward.kernel.h");
WEFTIO_DEFINE_KERNEL(receive, "forward.kernel.h");
WEFTIO_DEFINE_KERNEL(check, "forward.kernel.h");
WEFTIO_DEFINE_KERNEL(send, "forward.kernel.h");

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

struct options : bench::common_options {
    std::string port = "net_null0,size=64";
    std::string device = "cpu";
    std::string work = "forward";
    std::string mode = "inline";
    std::vector<int> cores{0, 1}; ///< core of the kernel, core of the engine
    std::uint32_t slots = 256, lanes = 1, idle_queues = 0, bytes = 64, prime = 0;
    std::uint64_t packets = 0; ///< 0: runs for `seconds`
    bool touch = true, verify = false, report = false;
    double seconds = 1;
};

/// Result of one run.
struct result {
    std::string name;
    double mpps, mpps_of_core; ///< per second of time, per second of processor time
    double copied_bytes;       ///< bytes copied per received packet
};

double processor_seconds()
{
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

class measurement {
 public:
    explicit measurement(const options& options)
        : options_(options), port_(open(options)), device_(device::open(options.device)),
          in_(port_, device_, {.packets = options.slots, .verify_checksums = options.verify}),
          out_(port_, device_, {.entries = options.slots}),
          frames_(port_, device_, {.count = BURST, .buffer_bytes = options.bytes}),
          seen_(device_.allocate(options.lanes * sizeof(std::uint32_t), memory_kind::cpu_device))
    {
        if (options.work != "send") // without a flow rule the port receives no packets
            everything_.emplace(port_, flow_match{}, flow_action::to(in_));
        for (std::uint32_t queue = 0; queue < options.idle_queues; ++queue)
            idle_.emplace_back(port_, device_, eth_txq_options{.entries = 64});
    }

    result run()
    {
        if (options_.prime != 0)
            prime();
        running_kernel kernel = launch();
        await(std::max<std::uint64_t>(options_.packets, 1));
        std::this_thread::sleep_for(options_.packets == 0 ? std::chrono::milliseconds(200)
                                                          : std::chrono::milliseconds(0));
        std::uint64_t before = moved();
        double used = processor_seconds();
        auto from = clock::now();
        if (options_.packets == 0)
            std::this_thread::sleep_for(std::chrono::duration<double>(options_.seconds));
        std::uint64_t packets = moved() - before;
        double seconds = std::chrono::duration<double>(clock::now() - from).count();
        used = processor_seconds() - used;
        std::uint64_t resident = bench::resident_bytes();
        kernel.stop();
        if (!kernel.wait_for(std::chrono::seconds(5)))
            throw error(errc::device_error, "forward_bench: the kernel did not end within 5 s");
        const auto moved_now = static_cast<double>(packets);
        report(moved_now / seconds, moved_now / used, resident);
        if (options_.work == "check" && wrong() != 0)
            throw error(errc::device_error, fmt::format("forward_bench: {} packets have wrong bytes; use a driver that "
                                                        "writes zeros, such as net_null with copy=1",
                                                        wrong()));
        const port_counters counted = port_.counters();
        return {.name = fmt::format("{} on {} ({}), {}, {} lanes on {}", options_.work, options_.port, port_.driver(),
                                    options_.mode, options_.lanes, options_.device),
                .mpps = moved_now / seconds / 1e6,
                .mpps_of_core = moved_now / used / 1e6,
                .copied_bytes = static_cast<double>(counted.copied_bytes) /
                                static_cast<double>(std::max<std::uint64_t>(counted.received, 1))};
    }

 private:
    static port open(const options& options)
    {
        bool thread = options.mode == "thread";
        return port::open(options.port, {.mode = thread ? engine_mode::thread : engine_mode::inline_worker,
                                         .idle = idle_policy::busy,
                                         .core = thread ? options.cores.at(1) : -1});
    }
    running_kernel launch() const
    {
        grid shape{.blocks = 1, .lanes = options_.lanes};
        if (options_.work == "receive")
            return device_.launch(receive_kernel, shape, in_, static_cast<std::uint32_t*>(seen_.device_address()));
        if (options_.work == "check")
            return device_.launch(check_kernel, shape, in_, static_cast<std::uint32_t*>(seen_.device_address()));
        if (options_.work == "send")
            return device_.launch(send_kernel, shape, out_, frames_, 0u);
        return device_.launch(forward_kernel, shape, in_, out_, options_.touch ? 1u : 0u);
    }
    /// Sends the frames that circulate if the port receives what it sends.
    void prime()
    {
        running_kernel kernel =
            device_.launch(send_kernel, {.blocks = 1, .lanes = options_.lanes}, out_, frames_, options_.prime);
        if (!kernel.wait_for(std::chrono::seconds(5)))
            throw error(errc::device_error,
                        fmt::format("forward_bench: {} frames could not be sent within 5 s", options_.prime));
    }
    /// Waits until `packets` packets have moved. Throws if none has moved for 5 s.
    void await(std::uint64_t packets) const
    {
        std::uint64_t seen = 0;
        for (auto last = clock::now(); seen < packets; std::this_thread::sleep_for(std::chrono::microseconds(100))) {
            if (std::uint64_t now = moved(); now != seen) {
                seen = now;
                last = clock::now();
            } else if (clock::now() - last > std::chrono::seconds(5)) {
                throw error(errc::device_error,
                            fmt::format("forward_bench: {} packets were moved, then none for 5 s", seen));
            }
        }
    }
    bool only_receives() const { return options_.work == "receive" || options_.work == "check"; }
    std::uint64_t moved() const { return only_receives() ? in_.counters().delivered : out_.counters().sent; }
    /// Number of packets that the checking kernel has found wrong.
    std::uint64_t wrong() const
    {
        const auto* of_lanes = static_cast<const std::uint32_t*>(seen_.cpu_address());
        return std::accumulate(of_lanes, of_lanes + options_.lanes, std::uint64_t{0});
    }
    void report(double rate, double rate_of_core, std::uint64_t resident) const
    {
        port_counters counters = port_.counters();
        bool conserved = counters.received == counters.delivered + counters.held + counters.dropped_total();
        if (options_.report)
            fmt::print("{{\"packets_per_s\":{:.0f},\"packets_per_core_s\":{:.0f},\"moved\":{},\"received\":{},"
                       "\"delivered\":{},"
                       "\"dropped\":{},\"copied_bytes\":{},\"sent\":{},"
                       "\"conserved\":{},\"resident_bytes\":{}}}\n",
                       rate, rate_of_core, moved(), counters.received, counters.delivered, counters.dropped_total(),
                       counters.copied_bytes, out_.counters().sent, conserved, resident);
        if (!conserved)
            throw error(errc::device_error, "forward_bench: received differs from delivered + held + dropped");
    }

    options options_;
    port port_;
    device device_;
    eth_rxq in_;
    eth_txq out_;
    buf_arr frames_;
    memory seen_;
    std::optional<flow> everything_;
    std::vector<eth_txq> idle_;
};

/// Measures with a new port, new queues and a new kernel in every round.
int measure(const options& wanted)
{
    bench::stay_on(wanted.cores.at(0));
    std::vector<double> rates, rates_of_core, copied;
    std::string name;
    for (unsigned round = 0; round < wanted.rounds; ++round) {
        const result found = measurement(wanted).run();
        name = found.name;
        rates.push_back(found.mpps);
        rates_of_core.push_back(found.mpps_of_core);
        copied.push_back(found.copied_bytes);
    }
    if (wanted.report)
        return 0;
    bench::table table("forward_bench");
    table.add({.name = wanted.work, .unit = "Mpps", .values = rates});
    table.add({.name = wanted.work + ", a second of processor time", .unit = "Mpps", .values = rates_of_core});
    table.add({.name = wanted.work + ", copied a packet", .unit = "bytes", .values = copied});
    fmt::print("{}; every packet accounted for\n", name);
    table.finish(wanted.json);
    return 0;
}

void add_options(CLI::App& app, options& wanted)
{
    auto add = [&app](const char* name, auto& value, const char* what) {
        return app.add_option(name, value, what)->capture_default_str();
    };
    add("--port", wanted.port, "port, as for port::open");
    add("--device", wanted.device, "cpu, opencl, cuda:0");
    add("--do", wanted.work, "what the kernel does; receive: takes completions, check: reads every byte and requires 0")
        ->check(CLI::IsMember({"forward", "receive", "check", "send"}));
    add("--mode", wanted.mode, "inline: the kernel runs the engine; thread: the engine has a core")
        ->check(CLI::IsMember({"inline", "thread"}));
    bench::add_cores(app, wanted.cores, "cores of the kernel and of the engine");
    add("--slots", wanted.slots, "entries of each ring");
    add("--lanes", wanted.lanes, "lanes of the kernel's block")->check(CLI::Range(1, 1024));
    add("--bytes", wanted.bytes, "length of a frame, for send")->check(CLI::Range(60, 1514));
    add("--idle-queues", wanted.idle_queues, "idle send queues");
    add("--packets", wanted.packets, "stop after this many packets; 0: measure for --seconds");
    add("--prime", wanted.prime, "frames to send first, for ports that loop them back");
    add("--seconds", wanted.seconds, "length of each round")->check(CLI::Range(0.01, 3600.0));
    app.add_flag("!--no-touch", wanted.touch, "forward without reading the packets");
    app.add_flag("--verify", wanted.verify, "verify checksums");
    app.add_flag("--report", wanted.report, "print a line of JSON with all counters for each round, and no table");
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    wanted.rounds = 1;
    CLI::App app{"Packets per second through one port, by a kernel."};
    add_options(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return measure(wanted); });
}
