// Effect of other queues of an engine on a well-behaved send queue, the good queue: its rate alone, and beside each of:
//   - a queue with bad entries only; after each error the host resets it at once
//   - 8 queues whose wait entries delay as many checksummed frames as a queue holds
//   - 8 queues that send at a deadline every 80 us, and every 8 us; and 8 on which a kernel sends as often, without
//     deadlines: what is left to the good queue by the frames alone
//   - 4,096 idle queues
//   - 64 queue pairs that a full completion queue holds up
//   - 64 queue pairs whose peer does not respond
//   - 512 completion queues without completions
// All rates are measured in the same run, alternately.
//
//   ./neighbor_bench                               7 rounds of half a second each: engine on core 0, good kernel on 1,
//                                                  neighbors on a third
//   ./neighbor_bench --mode inline --rounds 15     the good kernel runs the engine itself, on core 0; neighbors on 1
//
// The core of the neighbors is busy also while the good queue is alone, because cores of one chip slow each other down
// whatever the queues do. Without a core for each thread, no row is measured, and each names the cores that it needs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/arguments.hpp"
#include "common/table.hpp"
#include "machine.hpp"
#include "neighbor/pairs.hpp"
#include "nic/backend.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::uint32_t entries = 4096, burst = 32, frame_bytes = 64;
constexpr std::uint64_t patience_ns = 1'000'000'000;

struct options : bench::common_options {
    std::string mode = "thread";
    std::vector<int> cores{0, 1}; ///< of the engine (inline mode: and the good kernel), of the kernels
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

/// A thread that repeats step() from start() to end(). Its queues ring their doorbells directly: in inline mode a push
/// would run the engine, which only the good kernel may do.
class neighbor {
 public:
    neighbor() = default;
    neighbor(const neighbor&) = delete;
    neighbor& operator=(const neighbor&) = delete;
    virtual ~neighbor() = default;

    void start(int core)
    {
        thread_ = std::thread([this, core] {
            bench::stay_on(core);
            while (!ending_.load(std::memory_order_relaxed))
                step();
        });
    }
    void end()
    {
        ending_ = true;
        if (thread_.joinable())
            thread_.join();
    }

 protected:
    virtual void step() = 0;
    bool ends() const { return ending_.load(std::memory_order_relaxed); }

 private:
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

/// Does not use the port and keeps its core busy, as all other neighbors do.
class stranger : public neighbor {
 protected:
    void step() override { benchmark::DoNotOptimize(++steps_); }

 private:
    unsigned steps_ = 0;
};

/// A queue with bad entries only, which is reset after each error.
class bad : public neighbor {
 public:
    bad(const port& port, const device& device) : queue_(port, device, {.entries = 64}) {}
    ~bad() override { end(); }

 protected:
    /// Posts a full ring of entries with a key that does not exist.
    void step() override
    {
        weftio_dev_eth_txq* txq = queue_.handle();
        const weftio_dev_buf nowhere{reinterpret_cast<weftio_u8*>(64), frame_bytes, weftio_swap32(0x00dead00)};
        for (std::uint32_t at = 0; at < 64; ++at)
            weftio_dev_eth_txq_send_enqueue_weak(txq, nowhere, frame_bytes, at, WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_weak(txq, 64);
        weftio_dev_send_doorbell(&txq->queue.ring);
        for (std::uint32_t attempt = 0; weftio_dev_eth_txq_status(txq) == WEFTIO_DEV_OK && !ends(); ++attempt)
            weftio_relax(attempt);
        queue_.reset();
    }

 private:
    eth_txq queue_;
};

/// Queues that send one frame, or a burst, at each deadline; deadlines are an interval apart.
class paced : public neighbor {
 public:
    paced(const port& port, const device& device, std::uint64_t interval_ns, std::uint32_t frames, std::uint32_t bytes,
          std::uint32_t flags)
        : frames_(port, device, {.count = 1, .buffer_bytes = bytes}), interval_ns_(interval_ns), count_(frames),
          bytes_(bytes), flags_(flags)
    {
        for (auto& queue : queues_)
            queue.emplace(port, device, eth_txq_options{.entries = 1024});
    }
    ~paced() override { end(); }

 protected:
    void step() override
    {
        for (std::size_t each = 0; each < queues_.size(); ++each)
            refill(queues_[each]->handle(), next_ns_[each]);
    }

 private:
    void refill(weftio_dev_eth_txq* txq, std::uint64_t& next_ns)
    {
        constexpr std::uint64_t ahead_ns = 1'000'000'000;
        const std::uint64_t now_ns = weftio::utc_now_ns();
        if (next_ns < now_ns)
            next_ns = now_ns + interval_ns_;
        unsigned batch = 0;
        for (; batch < 64 && next_ns < now_ns + ahead_ns + interval_ns_ &&
               weftio_dev_send_room(&txq->queue.ring, count_ + 1) > count_;
             ++batch, next_ns += interval_ns_) {
            weftio_dev_eth_txq_wait_time_enqueue_strong(txq, eth_txq::timestamp(next_ns), WEFTIO_DEV_SEND_NONE);
            for (std::uint32_t frame = 0; frame < count_; ++frame)
                weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames_.handle(), 0), bytes_, flags_);
        }
        if (batch == 0)
            return;
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_send_doorbell(&txq->queue.ring);
    }

    buf_arr frames_;
    std::array<std::optional<eth_txq>, 8> queues_;
    std::array<std::uint64_t, 8> next_ns_{};
    std::uint64_t interval_ns_;
    std::uint32_t count_, bytes_, flags_;
};

/// Queues on which a kernel sends one frame each at every interval, without deadlines.
class sending : public neighbor {
 public:
    sending(const port& port, const device& device, std::uint64_t interval_ns)
        : frames_(port, device, {.count = 1, .buffer_bytes = frame_bytes}), interval_ns_(interval_ns)
    {
        for (auto& queue : queues_)
            queue.emplace(port, device, eth_txq_options{.entries = 1024});
    }
    ~sending() override { end(); }

 protected:
    void step() override
    {
        if (const std::uint64_t now_ns = weftio::utc_now_ns(); now_ns >= next_ns_) {
            next_ns_ = std::max(next_ns_ + interval_ns_, now_ns);
            for (auto& queue : queues_)
                send_one(queue->handle());
        }
    }

 private:
    void send_one(weftio_dev_eth_txq* txq)
    {
        if (weftio_dev_send_room(&txq->queue.ring, 1) == 0)
            return;
        weftio_dev_eth_txq_send_enqueue_strong(txq, weftio_dev_buf_get(frames_.handle(), 0), frame_bytes,
                                               WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(txq);
        weftio_dev_send_doorbell(&txq->queue.ring);
    }

    buf_arr frames_;
    std::array<std::optional<eth_txq>, 8> queues_;
    std::uint64_t interval_ns_, next_ns_ = 0;
};

/// Thousands of idle queues.
class idle : public stranger {
 public:
    idle(const port& port, const device& device)
    {
        for (int queue = 0; queue < 4096; ++queue)
            queues_.emplace_back(port, device, eth_txq_options{.entries = 64});
    }
    ~idle() override { end(); }

 private:
    std::deque<eth_txq> queues_;
};

/// Queue pairs whose completion queue is full and never consumed: all have entries that are done and cannot complete.
class held : public stranger {
 public:
    held(const port& port, const device& device)
        : at_(port, {.address = "10.9.8.7", .application_turns = port_is_inline(port)}),
          full_(port, device, {.entries = 1})
    {
        for (int pair = 0; pair < 32; ++pair) {
            queue_pair& one = pairs_.emplace_back(at_, device, full_, full_, queue_pair_options{.receive_entries = 0});
            queue_pair& other =
                pairs_.emplace_back(at_, device, full_, full_, queue_pair_options{.receive_entries = 0});
            const rdma_address address = one.address();
            one.connect(other.address());
            other.connect(address);
        }
        for (queue_pair& pair : pairs_)
            post_nops(pair);
    }
    ~held() override { end(); }

 private:
    static bool port_is_inline(const port& port) { return detail::internals::backend(port).is_inline(); }
    /// Posts a few no-operations, each with a completion.
    static void post_nops(queue_pair& pair)
    {
        constexpr std::uint32_t count = 4;
        auto* const words = static_cast<std::uint32_t*>(pair.send_ring());
        for (std::uint32_t at = 0; at < count; ++at) {
            words[at * 16] = weftio_swap32(at << 8 | WEFTIO_OPCODE_NOP);
            words[at * 16 + 1] = weftio_swap32(pair.number() << 8 | 1);
            words[at * 16 + 2] = weftio_swap32(WEFTIO_CE_ALWAYS);
        }
        weftio_store_release_sys_u32(static_cast<std::uint32_t*>(pair.record()) + 1, weftio_swap32(count));
    }

    rdma_device at_;
    completion_queue full_;
    std::deque<queue_pair> pairs_;
};

/// Queue pairs whose peer does not respond: each has a WRITE in flight that is not acknowledged for seconds.
class unanswered : public stranger {
 public:
    unanswered(const port& port, const device& device)
        : at_(port, {.address = "10.9.8.6", .application_turns = detail::internals::backend(port).is_inline()}),
          memory_(device.allocate(64, memory_kind::cpu_device)), region_(port, memory_)
    {
        const rdma_address nobody = rdma_address::of(
            {.address = "10.9.8.5", .queue = 17, .mac = std::array<std::uint8_t, 6>{2, 0, 0, 0, 0, 9}});
        for (int pair = 0; pair < 64; ++pair) {
            rdma_queue& queue = queues_.emplace_back(
                at_, device, rdma_queue_options{.entries = 64, .receive_entries = 64, .timeout = 20});
            queue.connect(nobody);
            weftio_dev_rdma_write(queue.handle(), {.address = 0, .bytes = 64, .rkey_be = 0, .reserved = 0}, 0,
                                  region_.buffer(), 0, 8, 0);
            weftio_dev_rdma_commit(queue.handle());
        }
    }
    ~unanswered() override { end(); }

 private:
    rdma_device at_;
    memory memory_;
    memory_region region_;
    std::deque<rdma_queue> queues_;
};

/// Armed completion queues without completions.
class quiet : public stranger {
 public:
    quiet(const port& port, const device& device)
    {
        for (int queue = 0; queue < 512; ++queue)
            queues_.emplace_back(port, device, completion_queue_options{.entries = 16}).arm();
    }
    ~quiet() override { end(); }

 private:
    std::deque<completion_queue> queues_;
};

using maker = std::function<std::unique_ptr<neighbor>(const port&, const device&)>;

struct row {
    const char* name;
    maker make;
    maker same_frames = nullptr; ///< sends as many frames, without what the row is about
};

/// 8 queues with a deadline every `us`.
row paced_row(const char* name, std::uint64_t us)
{
    return {
        .name = name,
        .make =
            [us](auto& port, auto& device) {
                return std::make_unique<paced>(port, device, us * 1000, 1, frame_bytes, WEFTIO_DEV_SEND_NONE);
            },
        .same_frames = [us](auto& port, auto& device) { return std::make_unique<sending>(port, device, us * 1000); }};
}

const std::vector<row>& rows()
{
    static const std::vector<row> all{
        {"bad entries", [](auto& port, auto& device) { return std::make_unique<bad>(port, device); }},
        {"8 waiting",
         [](auto& port, auto& device) {
             return std::make_unique<paced>(port, device, 1'000'000'000, 64, 1000, WEFTIO_DEV_SEND_L3_CHECKSUM);
         }},
        paced_row("8 at 80 us", 80),
        paced_row("8 at 8 us", 8),
        {"4096 idle", [](auto& port, auto& device) { return std::make_unique<idle>(port, device); }},
        {"64 held pairs", [](auto& port, auto& device) { return std::make_unique<held>(port, device); }},
        {"64 unanswered pairs", [](auto& port, auto& device) { return std::make_unique<unanswered>(port, device); }},
        {"512 quiet completion queues", [](auto& port, auto& device) { return std::make_unique<quiet>(port, device); }},
    };
    return all;
}

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
             const row& row, bench::table& table)
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
    for (const row& row : rows()) {
        if (std::string_view(row.name).find(wanted.only) == std::string_view::npos)
            continue;
        if (missing.empty())
            measure(wanted, on, port, cpu, good, row, table);
        else
            table.leave_out(fmt::format("beside {}", row.name), missing);
    }
    bench::measure_pairs({.inline_worker = !on.has_thread,
                          .engine_core = on.engine,
                          .other_core = on.other,
                          .rounds = wanted.rounds,
                          .seconds = wanted.seconds,
                          .only = wanted.only,
                          .missing = missing},
                         cpu, table);
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
    app.add_option("--only", wanted.only, "rows whose name contains this")->check([](const std::string& part) {
        const auto has = [&](std::string_view name) { return name.find(part) != std::string_view::npos; };
        return std::ranges::any_of(rows(), has, &row::name) || std::ranges::any_of(bench::pair_rows(), has)
                   ? std::string()
                   : part + " matches no row";
    });
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return measure(wanted); });
}
