// A kernel forwards or sends for minutes or days. Checks that no packet was lost, no counter decreased, and memory did
// not grow.
//
//   ./soak_bench                                          forwards for ten seconds at 80 % of its best rate
//   ./soak_bench --do pace --minutes 30 --rate 4000       sends a wait and a frame every 250 us, for half an hour
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "soak/soak.kernel.h"
#include "soak/watch.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(soak_forward, "soak/soak.kernel.h");
WEFTIO_DEFINE_KERNEL(soak_pace, "soak/soak.kernel.h");

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::uint32_t slots = 1024, primed = 256; ///< `primed` frames circulate when the kernel forwards
constexpr std::uint64_t lead_ns = 100'000'000;
constexpr auto patience = std::chrono::seconds(30);

volatile std::sig_atomic_t interrupted = 0;

/// Interval of a schedule that does not exceed `rate` frames per second.
std::uint64_t interval_ns(double rate)
{
    return static_cast<std::uint64_t>(std::ceil(1e9 / rate));
}

struct options : bench::common_options {
    std::string work = "forward";
    double minutes = 1.0 / 6, rate = 0, load_percent = 80, growth_mib = 1;
};

/// Result of a soak.
struct outcome {
    double best = 0, wanted = 0; ///< frames per second; 0: not measured
    double seconds = 0, grown_mib = 0;
    std::uint64_t packets = 0;
    std::string missing; ///< the counters that do not match
    bool good = false;
};

class soak {
 public:
    explicit soak(const options& options)
        : options_(options), paces_(options.work == "pace"), device_(device::open("cpu")),
          port_(port::open(paces_ ? "null" : "loopback",
                           {.mode = paces_ ? engine_mode::thread : engine_mode::inline_worker})),
          in_(port_, device_, {.packets = slots, .verify_checksums = false}), out_(port_, device_, {.entries = slots}),
          frames_(port_, device_, {.count = SOAK_BURST, .buffer_bytes = SOAK_FRAME_BYTES}),
          memory_(device_.allocate(sizeof(soak_orders), memory_kind::cpu_device))
    {
        if (!paces_)
            everything_.emplace(port_, flow_match{}, flow_action::to(in_));
    }

    /// Runs the soak. Returns whether all checks passed.
    bool run();

 private:
    running_kernel launch(const eth_txq& out, double rate);
    std::uint64_t stop(running_kernel& kernel);
    void drain();
    void prime();
    double unbounded_rate(const eth_txq& out);
    bool keeps_up(const eth_txq& out, double rate);
    double best_rate();
    bench::counters counters() const;
    std::string lost() const;
    double watch_for(running_kernel& kernel, bench::soak_watch& watch);
    void say(const outcome& found, const bench::soak_watch& watch) const;
    bench::table figures(const outcome& found, const bench::soak_watch& watch) const;

    options options_;
    bool paces_;
    device device_;
    port port_;
    eth_rxq in_;
    eth_txq out_;
    buf_arr frames_;
    memory memory_;
    std::optional<flow> everything_;
    std::uint64_t enqueued_ = 0; ///< frames that kernels of this run have enqueued, by their own count
};

/// @param rate  packets per second; 0: as fast as possible
running_kernel soak::launch(const eth_txq& out, double rate)
{
    auto* orders = static_cast<soak_orders*>(memory_.cpu_address());
    *orders = {.moved = 0,
               .ps_per_packet = rate > 0 ? static_cast<std::uint64_t>(1e12 / rate) : 0,
               .start = eth_txq::timestamp(utc_now_ns() + (rate > 0 ? lead_ns : 0)),
               .interval_ns = rate > 0 ? interval_ns(rate) : 0,
               .ahead = std::clamp(static_cast<std::uint32_t>(std::min(rate > 0 ? rate : 1e6, 1e6)), SOAK_BURST,
                                   slots / 2), // at most one second of waits
               .reserved = 0};
    if (paces_)
        return device_.launch(soak_pace_kernel, {}, out, frames_, static_cast<soak_orders*>(memory_.device_address()));
    return device_.launch(soak_forward_kernel, {}, in_, out, static_cast<soak_orders*>(memory_.device_address()));
}

/// Stops the kernel. Returns the number of frames that it has enqueued, by its own count.
std::uint64_t soak::stop(running_kernel& kernel)
{
    kernel.stop();
    if (!kernel.wait_for(patience))
        throw error(errc::device_error, "soak_bench: the kernel did not end within 30 s");
    return static_cast<soak_orders*>(memory_.cpu_address())->moved;
}

/// Waits until all enqueued frames have been sent and, when forwarding, have been received again.
void soak::drain()
{
    auto drained = [&] {
        return out_.counters().sent >= enqueued_ && (paces_ || port_.counters().delivered >= enqueued_);
    };
    for (auto end = clock::now() + patience; !drained() && clock::now() < end;)
        if (paces_)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        else
            port_.turn();
}

/// Sends the frames that circulate. The receive queue has more slots than there are frames.
void soak::prime()
{
    for (std::uint32_t frame = 0; frame < primed; ++frame)
        weftio_dev_eth_txq_send_enqueue_strong(out_.handle(), weftio_dev_buf_get(frames_.handle(), frame % SOAK_BURST),
                                               SOAK_FRAME_BYTES, WEFTIO_DEV_SEND_NONE);
    weftio_dev_eth_txq_commit_strong(out_.handle());
    weftio_dev_eth_txq_push(out_.handle());
    enqueued_ = primed;
    drain();
}

/// The highest rate of the kernel. When pacing, every wait is in the past and delays nothing.
double soak::unbounded_rate(const eth_txq& out)
{
    running_kernel kernel = launch(out, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    std::uint64_t before = out.counters().sent;
    auto begin = clock::now();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    double rate =
        static_cast<double>(out.counters().sent - before) / std::chrono::duration<double>(clock::now() - begin).count();
    std::uint64_t moved = stop(kernel);
    if (!paces_)
        enqueued_ += moved;
    drain();
    return rate;
}

/// Whether, at the end of half a second of a schedule, the frames due by then have been sent.
bool soak::keeps_up(const eth_txq& out, double rate)
{
    constexpr std::uint64_t trial_ns = 500'000'000;
    constexpr double enough = 0.98; // the rest may be in flight, or a thread may wait for a core
    const std::uint64_t before = out.counters().sent, start_ns = utc_now_ns() + lead_ns;
    running_kernel kernel = launch(out, rate);
    std::this_thread::sleep_for(std::chrono::nanoseconds(lead_ns + trial_ns));
    auto sent = static_cast<double>(out.counters().sent - before);
    double due = static_cast<double>(utc_now_ns() - start_ns) / static_cast<double>(interval_ns(rate));
    stop(kernel);
    return sent >= enough * due;
}

/// When forwarding, the highest rate. When pacing, the highest rate at which the engine keeps up with a schedule, which
/// is lower: a frame that waits for its time costs more than late frames, which are sent in bursts.
double soak::best_rate()
{
    constexpr int halves = 4; // bisections of the last step: the result is exact to 3 to 6 % of the rate
    constexpr double least = 1000;
    if (!paces_)
        return unbounded_rate(out_);
    eth_txq out(port_, device_, {.entries = slots}); // a separate queue: late frames here do not count for the soak
    auto good = [&](double rate) {
        return keeps_up(out, rate) || keeps_up(out, rate);
    }; // two tries, because another program may have had the core in the first
    double rate = unbounded_rate(out), too_much = rate;
    for (; !good(rate); rate /= 2)
        if (too_much = rate; rate < least)
            throw error(errc::device_error,
                        fmt::format("soak_bench: frames are late at {:.0f} per second because other programs use the "
                                    "cores; stop some of them, or set a rate with --rate",
                                    rate));
    for (int half = 0; half < halves && too_much > rate; ++half) {
        double between = (rate + too_much) / 2;
        (good(between) ? rate : too_much) = between;
    }
    return rate;
}

bench::counters soak::counters() const
{
    port_counters port = port_.counters();
    eth_rxq_counters in = in_.counters();
    eth_txq_counters out = out_.counters();
    return {{"port received", port.received},
            {"port received bytes", port.received_bytes},
            {"port delivered", port.delivered},
            {"port dropped", port.dropped_total()},
            {"port missed", port.driver_missed},
            {"port copied bytes", port.copied_bytes},
            {"delivered", in.delivered},
            {"delivered bytes", in.delivered_bytes},
            {"out of buffer", in.out_of_buffer},
            {"too long", in.too_long},
            {"enqueued", out.enqueued},
            {"sent", out.sent},
            {"sent bytes", out.sent_bytes},
            {"waited", out.waited},
            {"failed", out.failed},
            {"flushed", out.flushed},
            {"copied bytes", out.copied_bytes},
            {"in the past", out.tx_pp_timestamp_past_errors},
            {"scheduled", out_.schedule().count}};
}

/// The counters that do not match after all frames were sent; empty if all match.
std::string soak::lost() const
{
    port_counters port = port_.counters();
    eth_txq_counters out = out_.counters();
    std::string text;
    auto expect = [&](const char* what, std::uint64_t is, std::uint64_t must_be) {
        if (is != must_be)
            text += fmt::format("{}{} is {}, not {}", text.empty() ? "" : "; ", what, is, must_be);
    };
    expect("frames sent", out.sent, enqueued_);
    expect("entries enqueued", out.enqueued, out.sent + out.waited + out.failed + out.flushed);
    expect("entries failed or flushed", out.failed + out.flushed, 0);
    expect("packets dropped or missed", port.dropped_total() + port.driver_missed, 0);
    if (paces_) {
        expect("waits", out.waited, enqueued_);
    } else {
        expect("packets received", port.received, enqueued_);
        expect("packets delivered", port.delivered, enqueued_);
    }
    return text;
}

/// Samples memory and counters every second, until the time is over, the kernel ends or the user interrupts.
double soak::watch_for(running_kernel& kernel, bench::soak_watch& watch)
{
    const auto lasts =
        std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(options_.minutes * 60));
    const auto begin = clock::now(), end = begin + lasts;
    for (auto next = begin; clock::now() < end && !interrupted && kernel.alive();
         std::this_thread::sleep_until(std::min(next, end))) {
        watch.sample(counters());
        next += std::chrono::seconds(1);
    }
    return std::chrono::duration<double>(clock::now() - begin).count();
}

bool soak::run()
{
    if (!paces_)
        prime();
    outcome found;
    found.best = options_.rate > 0 ? 0 : best_rate();
    found.wanted = options_.rate > 0 ? options_.rate : found.best * options_.load_percent / 100;
    bench::soak_watch watch;
    running_kernel kernel = launch(out_, found.wanted);
    std::uint64_t before = out_.counters().sent;
    found.seconds = watch_for(kernel, watch);
    found.packets = out_.counters().sent - before;
    enqueued_ += stop(kernel);
    drain();
    watch.sample(counters());
    found.missing = lost();
    found.grown_mib = watch.growth_bytes() / 1048576;
    found.good = found.missing.empty() && watch.went_back().empty() && found.grown_mib <= options_.growth_mib;
    say(found, watch);
    figures(found, watch).finish(options_.json);
    fmt::print("{}\n", found.good ? "passed" : "FAILED");
    return found.good;
}

/// Prints the results that are not figures of the table.
void soak::say(const outcome& found, const bench::soak_watch& watch) const
{
    fmt::print("{:<22}{} on {} ({}), {}\n", "scenario", options_.work, port_.spec(), port_.driver(),
               paces_ ? "a wait and a frame each, engine in a thread of its own"
                      : fmt::format("{} frames go round, inline", primed));
    fmt::print("{:<22}{:.1f} min{}\n", "time", found.seconds / 60, interrupted ? ", interrupted" : "");
    fmt::print("{:<22}{} frames, {}\n", "conservation", found.packets,
               found.missing.empty() ? "none lost" : "LOST: " + found.missing);
    fmt::print("{:<22}{} looks at {} counters, {}\n", "monotonic", watch.samples(), counters().size(),
               watch.went_back().empty() ? "none went back" : "WENT BACK: " + watch.went_back());
    fmt::print("{:<22}{:.1f} MiB; it may grow by {:.0f} MiB\n", "memory",
               static_cast<double>(watch.last_resident_bytes()) / 1048576, options_.growth_mib);
}

bench::table soak::figures(const outcome& found, const bench::soak_watch& watch) const
{
    bench::table table("soak_bench");
    auto add = [&](const char* name, const char* unit, double value, const char* peer = "") {
        table.add({.name = name, .unit = unit, .values = {value}, .peer = peer});
    };
    if (found.best > 0)
        add("best rate", "/s", found.best);
    add("wanted rate", "/s", found.wanted, found.best > 0 ? "best rate" : "");
    add("reached rate", "/s", static_cast<double>(found.packets) / found.seconds, "wanted rate");
    add("memory grown", "MiB", found.grown_mib);
    add("memory grown, slope", "MiB an hour", watch.bytes_per_sample() * 3600 / 1048576);
    if (!paces_)
        return table;
    const schedule_error late = out_.schedule();
    add("late, p50", "ns", static_cast<double>(late.p50_ns));
    add("late, p99", "ns", static_cast<double>(late.p99_ns));
    add("late, max", "ns", static_cast<double>(late.max_ns));
    add("waits in the past", "waits", static_cast<double>(out_.counters().tx_pp_timestamp_past_errors));
    return table;
}

} // namespace

int main(int argc, char** argv)
{
    options options;
    CLI::App app{
        "Runs for the given time and reports whether anything was lost, went back or grew. Exit status 0: nothing."};
    app.add_option("--do", options.work,
                   "forward: frames circulate on a loopback port; pace: one frame after a wait every interval")
        ->check(CLI::IsMember({"forward", "pace"}))
        ->capture_default_str();
    app.add_option("--minutes", options.minutes, "how long")->check(CLI::Range(0.01, 1e6));
    auto* rate = app.add_option("--rate", options.rate, "frames per second; skips the measurement of the best rate")
                     ->check(CLI::Range(1.0, 1e9));
    app.add_option("--load", options.load_percent,
                   "percent of the best rate, which is measured first for a few seconds. forward: the maximum; pace: "
                   "the highest at which 98 % of the frames due in half a second are sent by its end")
        ->check(CLI::Range(1.0, 100.0))
        ->capture_default_str()
        ->excludes(rate);
    app.add_option("--growth", options.growth_mib, "MiB by which its memory may grow")->capture_default_str();
    bench::add_json(app, options);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    for (int signal : {SIGINT, SIGTERM})
        std::signal(signal, [](int) { interrupted = 1; });
    return bench::ending([&] { return soak(options).run() ? 0 : 1; });
}
