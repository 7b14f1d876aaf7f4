// What a bad queue costs its neighbor: the rate of a well-behaved send queue alone, and next to one that gets nothing
// but bad entries, each an error and a reset, as fast as the host can. Both in the same run, in turn.
//
//   ./neighbor_bench                               7 rounds of half a second each way, engine on core 0, kernels on
//   core 1 ./neighbor_bench --mode inline --rounds 15     the good kernel runs the engine itself, on core 0
//
// The core of the bad queue's thread computes while the good one is alone, too: cores of one chip slow each other down,
// and threads of one core, and that is no queue's doing.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "machine.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::uint32_t entries = 4096, burst = 32, frame_bytes = 64;
constexpr std::uint64_t patience_ns = 1'000'000'000;

struct options {
    std::string mode = "thread";
    std::vector<int> cores{0, 1}; ///< of the engine (inline: and the good kernel), of the kernels
    unsigned rounds = 7;
    double seconds = 0.5;
};

/// A kernel that sends good frames until it is told to end.
class good_kernel {
 public:
    good_kernel(const port& port, const device& device)
        : queue_(port, device, {.entries = entries}),
          frames_(port, device, {.count = burst, .buffer_bytes = frame_bytes})
    {}

    /// Frames a second over `seconds`.
    double run(double seconds)
    {
        weftio_dev_eth_txq* txq = queue_.handle();
        const std::uint64_t before = queue_.counters().sent;
        const auto begin = clock::now();
        std::chrono::duration<double> lasted{};
        do {
            if (weftio_dev_eth_txq_wait_room(txq, entries / 2, patience_ns) != WEFTIO_DEV_OK)
                throw error(errc::device_error,
                            "neighbor_bench: the good queue stands still; its neighbor has hurt it");
            send(txq);
            lasted = clock::now() - begin;
        } while (lasted.count() < seconds);
        const std::uint64_t sent = queue_.counters().sent - before;
        weftio_dev_eth_txq_wait_room(txq, entries, patience_ns);
        return static_cast<double>(sent) / lasted.count();
    }
    /// Entries that were not sent. @pre idle
    std::uint64_t lost() const
    {
        const eth_txq_counters counted = queue_.counters();
        return enqueued_ - counted.sent + counted.failed + counted.flushed;
    }

 private:
    /// Half a ring, in bursts.
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

/// A thread whose queue gets bad entries only, and is reset after each, from construction to destruction.
class bad_neighbor {
 public:
    bad_neighbor(const port& port, const device& device, int core) : queue_(port, device, {.entries = 64})
    {
        thread_ = std::thread([this, core] {
            bench::stay_on(core);
            while (!ending_.load())
                fail_once();
        });
    }
    bad_neighbor(const bad_neighbor&) = delete;
    bad_neighbor& operator=(const bad_neighbor&) = delete;
    ~bad_neighbor() { end(); }

    /// How often it has failed and was reset.
    std::uint64_t end()
    {
        ending_ = true;
        if (thread_.joinable())
            thread_.join();
        return resets_;
    }

 private:
    /// A full ring of entries with a key that nobody has given out. The doorbell is rung by hand: in inline mode a push
    /// would run the engine, which is the good kernel's.
    void fail_once()
    {
        weftio_dev_eth_txq* txq = queue_.handle();
        const weftio_dev_buf nowhere{reinterpret_cast<weftio_u8*>(64), frame_bytes, weftio_swap32(0x00dead00)};
        for (std::uint32_t at = 0; at < 64; ++at)
            weftio_dev_eth_txq_send_enqueue_weak(txq, nowhere, frame_bytes, at, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_weak(txq, 64);
        weftio_dev_send_doorbell(&txq->ring);
        for (std::uint32_t attempt = 0; weftio_dev_eth_txq_status(txq) == WEFTIO_DEV_OK && !ending_.load(); ++attempt)
            weftio_relax(attempt);
        queue_.reset();
        ++resets_;
    }

    eth_txq queue_;
    std::atomic<bool> ending_{false};
    std::uint64_t resets_ = 0;
    std::thread thread_;
};

/// A thread that has nothing to do with the port and keeps its core busy, from construction to destruction.
class stranger {
 public:
    explicit stranger(int core)
        : thread_([this, core] {
              bench::stay_on(core);
              for (unsigned turns = 0; !ending_.load(std::memory_order_relaxed); ++turns)
                  benchmark::DoNotOptimize(turns);
          })
    {}
    stranger(const stranger&) = delete;
    stranger& operator=(const stranger&) = delete;
    ~stranger()
    {
        ending_ = true;
        thread_.join();
    }

 private:
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

struct figures {
    std::vector<double> rates;

    double quantile(double of)
    {
        std::sort(rates.begin(), rates.end());
        return rates[static_cast<std::size_t>(of * static_cast<double>(rates.size() - 1) + 0.5)];
    }
    void print(const char* name)
    {
        fmt::print("{:<14} {:8.3f} {:8.3f} {:8.3f}\n", name, quantile(0.5) / 1e6, quantile(0) / 1e6, quantile(1) / 1e6);
    }
};

int measure(const options& wanted)
{
    const bool has_thread = wanted.mode == "thread";
    bench::stay_on(wanted.cores[has_thread ? 1 : 0]);
    port port = port::open("net_null0,size=64", {.mode = has_thread ? engine_mode::thread : engine_mode::inline_worker,
                                                 .idle = idle_policy::busy,
                                                 .core = has_thread ? wanted.cores[0] : -1});
    device cpu = device::open("cpu");
    good_kernel good(port, cpu);
    figures alone, beside;
    std::uint64_t resets = 0;
    good.run(wanted.seconds);
    for (unsigned round = 0; round < wanted.rounds; ++round) {
        {
            stranger other(wanted.cores[1]); // the core is shared either way
            alone.rates.push_back(good.run(wanted.seconds));
        }
        bad_neighbor bad(port, cpu, wanted.cores[1]);
        beside.rates.push_back(good.run(wanted.seconds));
        resets += bad.end();
    }
    fmt::print("{} rounds of {} s, {}; Mpps: median, least, most\n", wanted.rounds, wanted.seconds, wanted.mode);
    alone.print("alone");
    beside.print("next to bad");
    fmt::print("ratio {:.3f}, {} lost, {:.0f} errors and resets a second beside it\n",
               beside.quantile(0.5) / alone.quantile(0.5), good.lost(),
               static_cast<double>(resets) / (wanted.seconds * wanted.rounds));
    return good.lost() == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    CLI::App app("What a queue that gets nothing but bad entries costs its neighbor");
    app.add_option("--mode", wanted.mode, "who runs the engine")
        ->check(CLI::IsMember({"thread", "inline"}))
        ->capture_default_str();
    app.add_option("--cores", wanted.cores, "of the engine, of the kernels")
        ->delimiter(',')
        ->expected(2)
        ->capture_default_str();
    app.add_option("--rounds", wanted.rounds)->check(CLI::Range(5, 1000))->capture_default_str();
    app.add_option("--seconds", wanted.seconds, "each way, each round")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        return measure(wanted);
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}\n", failure.what());
        return 1;
    }
}
