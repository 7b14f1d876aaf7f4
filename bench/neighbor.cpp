// Effect of other queues of an engine on a well-behaved send queue, the good queue: its rate alone, and beside each of:
//   - a queue with bad entries only; after each error the host resets it at once
//   - 8 queues whose wait entries delay as many checksummed frames as a queue holds
//   - 8 queues that send at a deadline every 80 us, and every 8 us; and 8 on which a kernel sends as often, without
//     deadlines: what is left to the good queue by the frames alone
//   - a queue on which 8 threads post, each a frame every 80 us, and leave their entries to one commit
//   - kernels of two devices that hand items over by a semaphore, without an engine
//   - 4,096 idle queues
//   - 64 queue pairs that a full completion queue holds up
//   - 64 queue pairs whose peer does not respond
//   - 512 completion queues without completions
//   - a program that connects and disconnects by the connection manager; and an idle RDMA device, for which the engine
//     looks at what arrives: of this port, frames without end
// All rates are measured in the same run, alternately.
//
//   ./neighbor_bench                               7 rounds of half a second each: engine on core 0, good kernel on 1,
//                                                  neighbors on a third
//   ./neighbor_bench -g cuda:0 --only staged       pairs with payload in memory of a GPU, too
//   ./neighbor_bench --mode inline --rounds 15     the good kernel runs the engine itself, on core 0; neighbors on 1
//
// The core of the neighbors is busy also while the good queue is alone, because cores of one chip slow each other down
// whatever the queues do. Without a core for each thread, no row is measured, and each names the cores that it needs.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "machine.hpp"
#include "neighbor/datagrams.hpp"
#include "neighbor/neighbors.hpp"
#include "neighbor/pairs.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

using bench::frame_bytes, bench::maker, bench::neighbor_row, bench::stranger;

constexpr std::uint32_t entries = 4096, burst = 32;
constexpr std::uint64_t patience_ns = 1'000'000'000;

struct options : bench::common_options {
    std::string mode = "thread";
    std::vector<int> cores{0, 1}; ///< of the engine (inline mode: and the good kernel), of the kernels
    std::string gpu;              ///< of the rows with staged messages
    std::string only;             ///< rows whose name contains this
    double seconds = 0.5;
};

/// The good queue, and the kernel that sends valid frames on it in the calling thread.
class good_kernel {
 public:
    good_kernel(const port& port, const device& device)
        : queue_(port, device, {.entries = entries}),
          frames_(port, device, {.count = burst, .buffer_bytes = frame_bytes})
    {}

    /// Sends for `seconds`. Returns frames per second.
    double run(double seconds)
    {
        weftio_dev_eth_txq* txq = queue_.handle();
        const std::uint64_t before = queue_.counters().sent;
        const auto begin = clock::now();
        std::chrono::duration<double> lasted{};
        do {
            if (weftio_dev_eth_txq_wait_room(txq, entries / 2, patience_ns) != WEFTIO_DEV_OK)
                throw error(errc::device_error,
                            "neighbor_bench: the good queue stopped making progress, because of its neighbor");
            send(txq);
            lasted = clock::now() - begin;
        } while (lasted.count() < seconds);
        const std::uint64_t sent = queue_.counters().sent - before;
        weftio_dev_eth_txq_wait_room(txq, entries, patience_ns);
        return static_cast<double>(sent) / lasted.count();
    }
    /// Number of entries that were not sent. @pre the queue is idle
    std::uint64_t lost() const
    {
        const eth_txq_counters counted = queue_.counters();
        return enqueued_ - counted.sent + counted.failed + counted.flushed;
    }

 private:
    /// Sends half a ring of frames, in bursts.
    void send(weftio_dev_eth_txq* txq)
    {
        for (std::uint32_t sent = 0; sent < entries / 2; sent += burst) {
            std::uint32_t position = 0, mask = 0;
            weftio_dev_eth_txq_get_info(txq, &position, &mask);
            for (std::uint32_t at = 0; at < burst; ++at)
                weftio_dev_eth_txq_send_enqueue_weak(txq, weftio_dev_buf_get(frames_.handle(), at), frame_bytes,
                                                     position + at, WEFTIO_DEV_SEND_NONE);
            weftio_dev_eth_txq_commit_weak(txq, burst);
            weftio_dev_eth_txq_push(txq);
        }
        enqueued_ += entries / 2;
    }

    eth_txq queue_;
    buf_arr frames_;
    std::uint64_t enqueued_ = 0;
};

/// A core that is not in `taken`, so that the neighbors' thread takes no time from the good kernel; if there is none,
/// the last core of `taken`.
int another_core(const std::vector<int>& taken)
{
    for (const int core : bench::usable_cores())
        if (std::ranges::find(taken, core) == taken.end())
            return core;
    return taken.back();
}

/// The cores of the threads, and the number of cores that they need.
struct layout {
    explicit layout(const options& wanted)
        : has_thread(wanted.mode == "thread"), engine(has_thread ? wanted.cores[0] : -1),
          kernel(wanted.cores[has_thread ? 1 : 0]), other(has_thread ? another_core(wanted.cores) : wanted.cores[1])
    {}
    std::size_t needed() const { return has_thread ? 3 : 2; }
    /// Whether each thread has a core of its own.
    bool is_enough() const { return std::set<int>{has_thread ? engine : kernel, kernel, other}.size() == needed(); }

    bool has_thread;
    int engine, kernel, other;
};

/// Measures the good queue beside a stranger and beside the neighbor, alternately.
void measure(const options& wanted, const layout& on, const port& port, const device& cpu, good_kernel& good,
             const neighbor_row& row, bench::table& table)
{
    const auto rate_beside = [&](const maker& make) {
        const auto other = make(port, cpu);
        other->start(on.other);
        good.run(0.1); // until earlier entries are done and idle queues sleep
        const double rate = good.run(wanted.seconds) / 1e6;
        other->end();
        return rate;
    };
    std::vector<double> alone, beside, beside_frames;
    for (unsigned round = 0; round < wanted.rounds; ++round) {
        alone.push_back(rate_beside([](auto&, auto&) { return std::make_unique<stranger>(); }));
        beside.push_back(rate_beside(row.make));
        if (row.same_frames)
            beside_frames.push_back(rate_beside(row.same_frames));
    }
    const std::string without = fmt::format("without {}", row.name);
    table.add({.name = without, .unit = "Mpps", .values = alone});
    table.add({.name = fmt::format("beside {}", row.name), .unit = "Mpps", .values = beside, .peer = without});
    if (!row.same_frames)
        return;
    const std::string frames = fmt::format("beside the frames of {}", row.name);
    table.add({.name = frames, .unit = "Mpps", .values = beside_frames, .peer = without});
    table.add({.name = fmt::format("{}, of what the frames leave", row.name),
               .unit = "Mpps",
               .values = beside,
               .peer = frames});
}

int measure(const options& wanted)
{
    const layout on(wanted);
    const std::string missing = on.is_enough() ? "" : fmt::format("needs {} cores", on.needed());
    bench::stay_on(on.kernel);
    port port =
        port::open("net_null0,size=64", {.mode = on.has_thread ? engine_mode::thread : engine_mode::inline_worker,
                                         .idle = idle_policy::busy,
                                         .core = on.engine});
    device cpu = device::open("cpu");
    good_kernel good(port, cpu);
    good.run(wanted.seconds);
    bench::table table("neighbor_bench");
    for (const neighbor_row& row : bench::neighbor_rows()) {
        if (std::string_view(row.name).find(wanted.only) == std::string_view::npos)
            continue;
        if (missing.empty())
            measure(wanted, on, port, cpu, good, row, table);
        else
            table.leave_out(fmt::format("beside {}", row.name), missing);
    }
    const bench::pair_options of_pairs{.inline_worker = !on.has_thread,
                                       .engine_core = on.engine,
                                       .other_core = on.other,
                                       .rounds = wanted.rounds,
                                       .seconds = wanted.seconds,
                                       .gpu = wanted.gpu,
                                       .only = wanted.only,
                                       .missing = missing};
    bench::measure_pairs(of_pairs, cpu, table);
    bench::measure_datagrams(of_pairs, cpu, table);
    fmt::print("{} s each way, {}; the ratio is the share of the rate that is kept; {} lost\n", wanted.seconds,
               wanted.mode, good.lost());
    table.finish(wanted.json);
    return good.lost() == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    wanted.rounds = 7;
    CLI::App app("Cost of other queues of an engine for their neighbor");
    auto add = [&app](const char* name, auto& value, const char* what) {
        return app.add_option(name, value, what)->capture_default_str();
    };
    add("--mode", wanted.mode, "what runs the engine")->check(CLI::IsMember({"thread", "inline"}));
    bench::add_cores(app, wanted.cores, "cores of the engine and of the kernels");
    add("--seconds", wanted.seconds, "length of each way in each round")->check(CLI::PositiveNumber);
    app.add_option("-g,--gpu", wanted.gpu, "also measure pairs with payload in memory of this GPU: cuda:N");
    app.add_option("--only", wanted.only, "rows whose name contains this")->check([](const std::string& part) {
        const auto has = [&](std::string_view name) { return name.find(part) != std::string_view::npos; };
        return std::ranges::any_of(bench::neighbor_rows(), has, &neighbor_row::name) ||
                       std::ranges::any_of(bench::pair_rows(), has) || std::ranges::any_of(bench::datagram_rows(), has)
                   ? std::string()
                   : part + " matches no row";
    });
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return measure(wanted); });
}
