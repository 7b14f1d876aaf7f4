// Packets a second through one port: forwarded, received, checked or sent by a kernel. One figure a run; bench/versus
// runs it beside testpmd.
//
//   ./forward_bench                                        net_null, 64 bytes, inline: one core does all
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

struct options {
    std::string port = "net_null0,size=64";
    std::string device = "cpu";
    std::string work = "forward";
    std::string mode = "inline";
    std::vector<int> cores{0, 1}; ///< of the kernel, of the engine
    std::uint32_t slots = 256, lanes = 1, idle_queues = 0, bytes = 64, prime = 0;
    std::uint64_t packets = 0; ///< 0: as many as come in `seconds`
    bool touch = true, verify = false, json = false;
    double seconds = 1;
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
        if (options.work != "send") // without a rule nothing is received
            everything_.emplace(port_, flow_match{}, flow_action::to(in_));
        for (std::uint32_t queue = 0; queue < options.idle_queues; ++queue)
            idle_.emplace_back(port_, device_, eth_txq_options{.entries = 64});
    }

    void run()
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
        report(static_cast<double>(packets) / seconds, static_cast<double>(packets) / used, resident);
        if (options_.work == "check" && wrong() != 0)
            throw error(errc::device_error,
                        fmt::format("forward_bench: {} packets did not have the bytes of a driver that writes "
                                    "zeros, as net_null does with copy=1",
                                    wrong()));
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
    /// Frames that go round a port whose far end is its near end.
    void prime()
    {
        running_kernel kernel =
            device_.launch(send_kernel, {.blocks = 1, .lanes = options_.lanes}, out_, frames_, options_.prime);
        if (!kernel.wait_for(std::chrono::seconds(5)))
            throw error(errc::device_error,
                        fmt::format("forward_bench: {} frames could not be sent within 5 s", options_.prime));
    }
    /// An error when none moves any more.
    void await(std::uint64_t packets) const
    {
        std::uint64_t seen = 0;
        for (auto last = clock::now(); seen < packets; std::this_thread::sleep_for(std::chrono::microseconds(100))) {
            if (std::uint64_t now = moved(); now != seen) {
                seen = now;
                last = clock::now();
            } else if (clock::now() - last > std::chrono::seconds(5)) {
                throw error(errc::device_error,
                            fmt::format("forward_bench: {} packets have moved, and no more in 5 s", seen));
            }
        }
    }
    bool only_receives() const { return options_.work == "receive" || options_.work == "check"; }
    std::uint64_t moved() const { return only_receives() ? in_.counters().delivered : out_.counters().sent; }
    /// Packets that a kernel that checks has found to be so.
    std::uint64_t wrong() const
    {
        const auto* of_lanes = static_cast<const std::uint32_t*>(seen_.cpu_address());
        return std::accumulate(of_lanes, of_lanes + options_.lanes, std::uint64_t{0});
    }
    void report(double rate, double rate_of_core, std::uint64_t resident) const
    {
        port_counters counters = port_.counters();
        bool conserved = counters.received == counters.delivered + counters.held + counters.dropped_total();
        if (options_.json)
            fmt::print("{{\"packets_per_s\":{:.0f},\"packets_per_core_s\":{:.0f},\"moved\":{},\"received\":{},"
                       "\"delivered\":{},"
                       "\"dropped\":{},\"copied_bytes\":{},\"sent\":{},"
                       "\"conserved\":{},\"resident_bytes\":{}}}\n",
                       rate, rate_of_core, moved(), counters.received, counters.delivered, counters.dropped_total(),
                       counters.copied_bytes, out_.counters().sent, conserved, resident);
        else
            fmt::print(
                "{} on {} ({}), {}, {} lanes on {}: {:.2f} Mpps, {:.2f} a second of processor time; {} bytes copied on "
                "the way in; {}\n",
                options_.work, options_.port, port_.driver(), options_.mode, options_.lanes, options_.device,
                rate / 1e6, rate_of_core / 1e6, counters.copied_bytes,
                conserved ? "every packet accounted for" : "PACKETS ARE MISSING");
        if (!conserved)
            throw error(errc::device_error, "forward_bench: received is not delivered + held + dropped");
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

} // namespace

int main(int argc, char** argv)
{
    options options;
    CLI::App app{"Packets a second through one port, by a kernel."};
    app.add_option("--port", options.port, "as port::open takes it")->capture_default_str();
    app.add_option("--device", options.device, "cpu, opencl, cuda:0")->capture_default_str();
    app.add_option("--do", options.work,
                   "what the kernel does; receive: takes completions, check: reads every byte, which is 0")
        ->check(CLI::IsMember({"forward", "receive", "check", "send"}))
        ->capture_default_str();
    app.add_option("--mode", options.mode, "inline: the kernel runs the engine; thread: the engine has a core")
        ->check(CLI::IsMember({"inline", "thread"}))
        ->capture_default_str();
    app.add_option("--cores", options.cores, "of the kernel, of the engine")
        ->delimiter(',')
        ->expected(2)
        ->capture_default_str();
    app.add_option("--slots", options.slots, "of each ring")->capture_default_str();
    app.add_option("--lanes", options.lanes, "of the kernel's block")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--bytes", options.bytes, "of a frame, for send")
        ->check(CLI::Range(60, 1514))
        ->capture_default_str();
    app.add_option("--idle-queues", options.idle_queues, "send queues that nobody uses")->capture_default_str();
    app.add_option("--packets", options.packets, "stop behind so many; 0: measure for --seconds")
        ->capture_default_str();
    app.add_option("--prime", options.prime, "frames to send first, for ports on which they come back")
        ->capture_default_str();
    app.add_option("--seconds", options.seconds, "measured")->check(CLI::Range(0.01, 3600.0))->capture_default_str();
    app.add_flag("!--no-touch", options.touch, "forward without looking at the packets");
    app.add_flag("--verify", options.verify, "verify checksums");
    app.add_flag("--json", options.json, "one line of JSON");
    CLI11_PARSE(app, argc, argv);
    try {
        bench::stay_on(options.cores.at(0));
        measurement(options).run();
        return 0;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}\n", failure.what());
        return 1;
    }
}
