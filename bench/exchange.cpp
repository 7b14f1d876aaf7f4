// What two cores can exchange at all, for comparison with an engine and a kernel on a core each (bench/versus):
//
// - cache lines one way: one core fills the lines of a ring, the other sees that they are filled, and reads a word of
//   each;
// - cache lines there and back: the reader answers each line with one of a second ring;
// - mbufs through an rte_ring: one core takes packets from net_null, the other swaps their addresses and sends them, as
//   a pipeline of DPDK does.
//
//   ./exchange_bench                          all three, between cores 0 and 1
//   ./exchange_bench --cores 2,4 --only back --report
//
// In a virtual machine the host may move its processors: between threads of one core, and between cores that share
// little. Rates change several times over then. So compare rates of one run only, measured alternately.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <rte_vect.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/arguments.hpp"
#include "common/on_core.hpp"
#include "common/table.hpp"
#include "core/prefetch.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::uint32_t burst = 64;

struct options : bench::common_options {
    std::string only;
    std::vector<int> cores{0, 1}; ///< the core that begins, the core that answers
    std::uint32_t slots = 1024;
    double seconds = 0.3;
    bool report = false;
};

/// A cache line that is filled when its last word is its number in the row of all lines.
struct alignas(64) line {
    std::array<std::uint32_t, 15> words{};
    std::atomic<std::uint32_t> number{UINT32_MAX};

    void fill(std::uint32_t with) noexcept
    {
        const rte_v128u64_t four = {with, with}; // as an engine writes a completion: some wide stores
        for (std::size_t at = 0; at < 12; at += 4)
            std::memcpy(&words[at], &four, sizeof four);
        words[12] = words[13] = words[14] = with;
        number.store(with, std::memory_order_release);
    }
};

/// A ring of lines that one core fills and the other reads.
class lines {
 public:
    explicit lines(std::uint32_t count) : lines_(count) {}

    void fetch_to_fill(std::uint32_t first, std::uint32_t count) noexcept
    {
        for (std::uint32_t at = 0; at < count; ++at)
            core::fetch_to_write(&(*this)[first + at]);
    }
    line& operator[](std::uint32_t number) noexcept { return lines_[number & (lines_.size() - 1)]; }
    /// How many lines from `first` on are filled, at most a burst.
    std::uint32_t filled(std::uint32_t first) noexcept
    {
        std::uint32_t count = 0;
        while (count < burst && (*this)[first + count].number.load(std::memory_order_acquire) == first + count)
            ++count;
        return count;
    }

 private:
    std::vector<line> lines_;
};

/// Returns lines a second: all that were read, or came back.
double exchange_lines(const options& wanted, bool there_and_back)
{
    lines there(wanted.slots), back(wanted.slots);
    alignas(64) std::atomic<std::uint32_t> taken{0};
    alignas(64) std::atomic<bool> over{false};
    std::uint32_t sum = 0;
    std::thread answering([&] {
        bench::on_core here(wanted.cores[1]);
        for (std::uint32_t next = 0; !over.load(std::memory_order_relaxed);) {
            const std::uint32_t count = there.filled(next);
            if (there_and_back)
                back.fetch_to_fill(next, count);
            for (std::uint32_t at = 0; at < count; ++at, ++next) {
                sum += there[next].words[0];
                if (there_and_back)
                    back[next].fill(next);
            }
            if (count != 0)
                taken.store(next, std::memory_order_release);
            else
                rte_pause();
        }
    });
    double rate = 0;
    std::thread beginning([&] {
        bench::on_core here(wanted.cores[0]);
        std::uint32_t next = 0, done = 0;
        std::uint64_t all = 0;
        const auto start = clock::now();
        for (auto now = start; now - start < std::chrono::duration<double>(wanted.seconds); now = clock::now())
            for (int turn = 0; turn < 64; ++turn) {
                const std::uint32_t before = done;
                done = there_and_back ? done + back.filled(done) : taken.load(std::memory_order_acquire);
                all += done - before;
                const std::uint32_t count = std::min(burst, wanted.slots - (next - done));
                there.fetch_to_fill(next, count);
                for (std::uint32_t at = 0; at < count; ++at, ++next)
                    there[next].fill(next);
                if (count == 0)
                    rte_pause();
            }
        rate = static_cast<double>(all) / std::chrono::duration<double>(clock::now() - start).count();
        over = true;
    });
    beginning.join();
    answering.join();
    benchmark::DoNotOptimize(sum);
    return rate;
}

/// The calling thread has the mempool caches of a thread of DPDK.
struct dpdk_thread {
    dpdk_thread()
    {
        if (rte_thread_register() != 0)
            throw std::runtime_error("exchange_bench: DPDK has no room for one more thread");
    }
    dpdk_thread(const dpdk_thread&) = delete;
    dpdk_thread& operator=(const dpdk_thread&) = delete;
    ~dpdk_thread() { rte_thread_unregister(); }
};

/// A net_null port of DPDK's own, with one queue each way.
class null_port {
 public:
    null_port()
        : environment_(port::open("null")),
          pool_(rte_pktmbuf_pool_create("exchange", 8191, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, -1))
    {
        rte_eth_conf none{};
        if (!pool_ || rte_eal_hotplug_add("vdev", "net_null_exchange", "size=64") != 0 ||
            rte_eth_dev_get_port_by_name("net_null_exchange", &id_) != 0 ||
            rte_eth_dev_configure(id_, 1, 1, &none) != 0 ||
            rte_eth_rx_queue_setup(id_, 0, 512, -1, nullptr, pool_) != 0 ||
            rte_eth_tx_queue_setup(id_, 0, 512, -1, nullptr) != 0 || rte_eth_dev_start(id_) != 0)
            throw std::runtime_error("exchange_bench: no net_null port can be made");
    }
    null_port(const null_port&) = delete;
    null_port& operator=(const null_port&) = delete;
    ~null_port()
    {
        rte_eth_dev_stop(id_);
        rte_eal_hotplug_remove("vdev", "net_null_exchange");
        rte_mempool_free(pool_);
    }
    std::uint16_t id() const noexcept { return id_; }

 private:
    port environment_; ///< which has started DPDK
    rte_mempool* pool_;
    std::uint16_t id_ = 0;
};

void swap_addresses(rte_mbuf& frame)
{
    auto* header = rte_pktmbuf_mtod(&frame, rte_ether_hdr*);
    std::swap(header->src_addr, header->dst_addr);
}

double pipeline(const options& wanted)
{
    const null_port port;
    rte_ring* const between = rte_ring_create("exchange", wanted.slots, -1, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!between)
        throw std::runtime_error("exchange_bench: no rte_ring can be made");
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> sent{0};
    std::thread taking([&] {
        bench::on_core here(wanted.cores[0]);
        dpdk_thread registered;
        std::array<rte_mbuf*, burst> frames;
        while (!over.load(std::memory_order_relaxed)) {
            if (rte_ring_free_count(between) < burst)
                continue;
            const std::uint16_t count = rte_eth_rx_burst(port.id(), 0, frames.data(), burst);
            rte_ring_sp_enqueue_bulk(between, reinterpret_cast<void**>(frames.data()), count, nullptr);
        }
    });
    std::thread sending([&] {
        bench::on_core here(wanted.cores[1]);
        dpdk_thread registered;
        std::array<rte_mbuf*, burst> frames;
        std::uint64_t all = 0;
        while (!over.load(std::memory_order_relaxed) || rte_ring_count(between) != 0) {
            const unsigned count =
                rte_ring_sc_dequeue_burst(between, reinterpret_cast<void**>(frames.data()), burst, nullptr);
            std::for_each_n(frames.begin(), count, [](rte_mbuf* frame) { swap_addresses(*frame); });
            const std::uint16_t given =
                rte_eth_tx_burst(port.id(), 0, frames.data(), static_cast<std::uint16_t>(count));
            rte_pktmbuf_free_bulk(&frames[given], count - given);
            all += given;
            sent.store(all, std::memory_order_relaxed);
        }
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::uint64_t before = sent;
    const auto start = clock::now();
    std::this_thread::sleep_for(std::chrono::duration<double>(wanted.seconds));
    const double rate =
        static_cast<double>(sent - before) / std::chrono::duration<double>(clock::now() - start).count();
    over = true;
    taking.join();
    sending.join();
    rte_ring_free(between);
    return rate;
}

/// Whether the two are threads of one core, as far as this system says.
std::string siblings(const options& wanted)
{
    std::string list;
    std::ifstream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", wanted.cores[0])) >> list;
    const bool alone = list.find_first_of(",-") == std::string::npos;
    return alone ? "the system says that they are no threads of one core" : "threads of one core: " + list;
}

struct measurement {
    const char* word;
    const char* name;
    double (*measure)(const options&);
};

constexpr measurement all[] = {
    {"lines", "cache lines one way", [](const options& wanted) { return exchange_lines(wanted, false); }},
    {"back", "cache lines there and back", [](const options& wanted) { return exchange_lines(wanted, true); }},
    {"pipeline", "mbufs through an rte_ring, addresses swapped", pipeline},
};

int run(const options& wanted)
{
    bench::table table("exchange_bench");
    std::vector<std::vector<double>> values(std::size(all));
    for (unsigned round = 0; round < wanted.rounds; ++round)
        for (std::size_t at = 0; at < std::size(all); ++at)
            if (wanted.only.empty() || wanted.only == all[at].word)
                values[at].push_back(all[at].measure(wanted) / 1e6);
    for (std::size_t at = 0; at < std::size(all); ++at)
        if (wanted.report && !values[at].empty())
            fmt::print("{{\"packets_per_s\":{:.0f}}}\n", values[at].back() * 1e6);
        else if (!values[at].empty())
            table.add({.name = all[at].name, .unit = "M/s", .values = values[at]});
    if (wanted.report)
        return 0;
    fmt::print("cores {}, rings of {}; {}\n", fmt::join(wanted.cores, " and "), wanted.slots, siblings(wanted));
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    CLI::App app{"What two cores can exchange: cache lines, and mbufs through an rte_ring."};
    bench::add_cores(app, wanted.cores, "core that begins, and core that answers");
    app.add_option("--only", wanted.only, "one of them")->check(CLI::IsMember({"lines", "back", "pipeline"}));
    app.add_option("--slots", wanted.slots, "entries of each ring, a power of two")
        ->capture_default_str()
        ->check([](const std::string& words) {
            const auto slots = std::strtoul(words.c_str(), nullptr, 10);
            return slots >= 2 * burst && slots <= 65536 && (slots & (slots - 1)) == 0
                       ? ""
                       : words + " is not a power of two in 128..65536";
        });
    app.add_option("--seconds", wanted.seconds, "length of each measurement")
        ->capture_default_str()
        ->check(CLI::Range(0.001, 3600.0));
    app.add_flag("--report", wanted.report, "print a line of JSON for each, and no table");
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(wanted); });
}
