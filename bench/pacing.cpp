// Accuracy of scheduled sends: a kernel schedules one frame per interval, and each stage measures how late each frame
// was.
//
//   ./pacing_bench          50,000 frames 100 us apart on a veth pair of its own (needs root); then by tcpreplay
//   ./pacing_bench --port iface:v0 --far v1 --interval 10000 --count 100000 --json out.json
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/arguments.hpp"
#include "common/network.hpp"
#include "common/table.hpp"
#include "pacing/distribution.hpp"
#include "pacing/frame.hpp"
#include "pacing/machine.hpp"
#include "pacing/pacing.kernel.h"
#include "pacing/peer_capture.hpp"
#include "pacing/tcpreplay.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(pacing, "pacing/pacing.kernel.h");

namespace {

using namespace weftio;
using bench::row;

constexpr std::uint64_t lead_ns = 100'000'000;             // from now to the first frame
constexpr std::uint64_t furthest_ahead_ns = 1'000'000'000; // of waits ahead of the clock; a queue's horizon is 4 s
constexpr std::uint64_t most_ahead = 1024, most_batch = 32;

struct options : bench::common_options {
    std::uint64_t interval_ns = 100'000;
    std::uint32_t count = 50'000;
    std::string port, peer, device = "cpu";
    int core = 1;
    bool tcpreplay = true;
};

struct result {
    std::string driver;
    std::vector<row> rows;
    eth_txq_counters counters;
    bench::machine_use machine;
    std::string trouble; ///< what failed; empty if every frame was sent
    std::string tcpreplay;
};

/// The queue on which the kernel enqueues frames, and the notifications of the host about them.
class paced_queue {
 public:
    paced_queue(const port& port, const options& options)
        : options_(options), device_(device::open(options.device)),
          ahead_(static_cast<std::uint32_t>(
              std::clamp(furthest_ahead_ns / options.interval_ns, std::uint64_t{1}, most_ahead))),
          queue_(port, device_, {.entries = std::max(64u, std::bit_ceil(2 * ahead_))}),
          frames_(port, device_, {.count = ahead_, .buffer_bytes = FRAME_BYTES}),
          memory_(device_.allocate(sizeof(schedule), memory_kind::cpu_device))
    {
        for (std::uint32_t frame = 0; frame < ahead_; ++frame)
            std::ranges::copy(bench::make_frame(port.mac(), 0), static_cast<std::uint8_t*>(frames_.cpu_address(frame)));
        done_late_ns_.reserve(options.count);
        progress_.attach(queue_, {.on_sent = [this](const send_notification& sent) { note(sent); },
                                  .on_error = [this](const send_failure& failure) { trouble_ = failure.text; }});
    }

    /// Blocks until all frames have been sent, or an error. Returns the error, or an empty string.
    std::string send();
    std::uint64_t planned_ns(std::uint32_t sequence) const { return start_ns_ + sequence * options_.interval_ns; }
    const eth_txq& queue() const { return queue_; }
    row handed_over() const;
    row done() const { return bench::summarize("driver done with it", done_late_ns_); }

 private:
    void note(const send_notification& sent)
    {
        done_late_ns_.push_back(static_cast<std::int64_t>(sent.time_ns - planned_ns(sent.position / 2)));
    }

    const options& options_;
    device device_;
    std::uint32_t ahead_;
    eth_txq queue_;
    buf_arr frames_;
    memory memory_;
    progress_engine progress_;
    std::uint64_t start_ns_ = 0;
    std::vector<std::int64_t> done_late_ns_;
    std::string trouble_;
};

std::string paced_queue::send()
{
    auto* plan = static_cast<schedule*>(memory_.cpu_address());
    plan->count = options_.count;
    plan->interval_ns = options_.interval_ns;
    plan->ahead = ahead_;
    plan->batch = std::min(ahead_, static_cast<std::uint32_t>(most_batch));
    auto kernel = device_.launch(pacing_kernel, {}, queue_, frames_, memory_.device_address());
    while (kernel.alive() && !weftio_load_acquire_sys_u32(&plan->running))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    start_ns_ = utc_now_ns() + lead_ns;
    weftio_store_release_sys_u64(&plan->start, eth_txq::timestamp(start_ns_));

    std::uint64_t last_ns = planned_ns(options_.count) + 5'000'000'000;
    while (done_late_ns_.size() < options_.count && trouble_.empty() && utc_now_ns() < last_ns) {
        progress_.progress();
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    kernel.stop();
    kernel.wait_for(std::chrono::seconds(5));
    if (trouble_.empty() && done_late_ns_.size() != options_.count)
        trouble_ = fmt::format(
            "{} of {} frames were sent; the kernel enqueued {} and returned status {}; {} notifications were lost",
            done_late_ns_.size(), options_.count, plan->enqueued, plan->status, queue_.counters().lost_events);
    return trouble_;
}

/// The row from the engine's own histogram, which has no single frames.
row paced_queue::handed_over() const
{
    schedule_error late = queue_.schedule();
    return {.name = "handed over to the driver",
            .frames = late.count,
            .early = 0,
            .knows_early = false,
            .p50_ns = late.p50_ns,
            .p99_ns = late.p99_ns,
            .p999_ns = late.p999_ns,
            .max_ns = late.max_ns,
            .end_drift_ns = 0,
            .knows_drift = false};
}

/// How late each arrival is, compared with the schedule that `start_ns` and the interval define.
std::vector<std::int64_t> lateness(const std::vector<bench::arrival>& arrivals, std::uint64_t start_ns,
                                   std::uint64_t interval_ns)
{
    std::vector<std::int64_t> late_ns;
    for (const bench::arrival& arrived : arrivals)
        late_ns.push_back(static_cast<std::int64_t>(arrived.time_ns - start_ns - arrived.sequence * interval_ns));
    return late_ns;
}

void measure_weftio(const options& options, result& result)
{
    port port = port::open(options.port, {.idle = idle_policy::busy, .core = options.core});
    result.driver = port.driver();
    bench::stay_off_core(options.core); // the kernel, the capture and this thread
    paced_queue paced(port, options);
    std::unique_ptr<bench::peer_capture> capture;
    if (!options.peer.empty())
        capture = std::make_unique<bench::peer_capture>(options.peer, options.count);
    bench::machine_watch watch(options.core);
    result.trouble = paced.send();
    result.machine = watch.use();
    result.counters = paced.queue().counters();
    result.rows = {paced.handed_over(), paced.done()};
    if (!capture)
        return;
    auto arrivals = capture->finish();
    result.rows.push_back(bench::summarize("far side", lateness(arrivals, paced.planned_ns(0), options.interval_ns)));
    if (result.trouble.empty() && arrivals.size() != options.count)
        result.trouble = fmt::format("{} of {} frames arrived on {}; its capture lost {}", arrivals.size(),
                                     options.count, options.peer, capture->lost());
}

/// tcpreplay's schedule begins with its first frame, because it cannot start at a given time.
void measure_tcpreplay(const options& options, result& result)
{
    std::string interface = options.port.starts_with("iface:") ? options.port.substr(6) : "";
    if (interface.empty() || options.peer.empty()) {
        result.tcpreplay = "needs --port iface:NAME and --far";
        return;
    }
    bench::stay_off_core(-1);
    bench::peer_capture capture(options.peer, options.count);
    result.tcpreplay = bench::run_tcpreplay(interface, options.count, options.interval_ns);
    auto arrivals = capture.finish();
    if (!result.tcpreplay.empty() || arrivals.empty())
        return;
    row theirs = bench::summarize("tcpreplay", lateness(arrivals, arrivals.front().time_ns, options.interval_ns));
    theirs.knows_early = false;
    result.rows.insert(result.rows.end() - 1, theirs); // before the row that has it as its peer
    result.rows.back().peer = theirs.name;
}

void print(const options& options, const result& result)
{
    fmt::print("{} frames of {} bytes, one per {} ns, on {} ({}), from a kernel on {}\n", options.count, FRAME_BYTES,
               options.interval_ns, options.port, result.driver, options.device);
    fmt::print("machine: {}\n", result.machine.text());
    fmt::print("waits: {} in the past, {} beyond the horizon, {} out of order\n",
               result.counters.tx_pp_timestamp_past_errors, result.counters.tx_pp_timestamp_future_errors,
               result.counters.tx_pp_timestamp_order_errors);
    if (!result.tcpreplay.empty())
        fmt::print("tcpreplay: {}\n", result.tcpreplay);
}

/// The rows of the table: how late frames were at each point of measurement. tcpreplay is compared by the drift of the
/// last frame.
bench::table figures(const result& result)
{
    bench::table table("pacing_bench");
    auto add = [&table](std::string name, const char* unit, double value, std::string peer = {}) {
        table.add({.name = std::move(name), .unit = unit, .values = {value}, .peer = std::move(peer)});
    };
    for (const row& row : result.rows) {
        if (row.frames == 0)
            continue;
        add(row.name + ", p50", "us", static_cast<double>(row.p50_ns) / 1e3);
        add(row.name + ", p99", "us", static_cast<double>(row.p99_ns) / 1e3);
        add(row.name + ", p99.9", "us", static_cast<double>(row.p999_ns) / 1e3);
        add(row.name + ", max", "us", static_cast<double>(row.max_ns) / 1e3);
        if (row.knows_early)
            add(row.name + ", early", "frames", static_cast<double>(row.early));
        if (row.knows_drift)
            add(row.name + ", end drift", "us", std::abs(static_cast<double>(row.end_drift_ns)) / 1e3,
                row.peer.empty() ? "" : row.peer + ", end drift");
    }
    return table;
}

/// Without --port: chooses a private veth pair (root), or a port that drops all frames.
void choose_port(options& options)
{
    if (!options.port.empty())
        return;
    if (geteuid() == 0) {
        bench::make_private_network("near", "far");
        options.port = "iface:near";
        options.peer = "far";
    } else {
        options.port = "null";
        fmt::print("not root: no veth pair, so neither a capture at the other end nor tcpreplay\n");
    }
}

int run(options options)
{
    choose_port(options);
    if (std::thread::hardware_concurrency() <= static_cast<unsigned>(std::max(options.core, 0)))
        options.core = -1;
    result result;
    measure_weftio(options, result);
    if (options.tcpreplay)
        measure_tcpreplay(options, result);
    print(options, result);
    figures(result).finish(options.json);
    if (!result.trouble.empty())
        fmt::print("FAILED: {}\n", result.trouble);
    bool early = std::ranges::any_of(result.rows, [](const row& row) { return row.knows_early && row.early != 0; });
    return result.trouble.empty() && !early ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"A kernel schedules frames; measures how late each was handed to the driver and arrived. tcpreplay "
                 "does the same for comparison."};
    options options;
    app.add_option("--interval", options.interval_ns, "nanoseconds between frames")
        ->capture_default_str()
        ->check(CLI::Range(1000, 999'999'999));
    app.add_option("--count", options.count, "frames")->capture_default_str()->check(CLI::Range(1, 1'000'000'000));
    app.add_option("--port", options.port, "port, as for port::open; default: a new veth pair, or null when not root");
    app.add_option("--far", options.peer, "interface at the other end, to capture on")->needs("--port");
    app.add_option("--device", options.device, "where the kernel runs")->capture_default_str();
    app.add_option("--core", options.core, "core of the engine, -1 for any")->capture_default_str();
    bench::add_json(app, options);
    app.add_flag("!--no-tcpreplay", options.tcpreplay, "do not run tcpreplay");
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(std::move(options)); });
}
