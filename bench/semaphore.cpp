// Rate of items from core to core, one at a time: through a semaphore, and through DPDK's rte_ring in the same run.
//
//   ./semaphore_bench                             9 rounds of 2 million items each way, on cores 0 and 1
//   ./semaphore_bench --cores 2,4 --items 512 --json out.json
//
// Measurements alternate, so that other load of the machine affects all of them; medians are compared. All threads wait
// in the same way (weftio_relax). Only for the CPU device, where a kernel is a thread.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_ring.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "common/arguments.hpp"
#include "common/on_core.hpp"
#include "common/table.hpp"
#include "semaphore.kernel.h"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(hand_over, "semaphore.kernel.h");
WEFTIO_DEFINE_KERNEL(take, "semaphore.kernel.h");
WEFTIO_DEFINE_KERNEL(echo, "semaphore.kernel.h");

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::chrono::minutes patience{5};

struct options : bench::common_options {
    std::uint32_t items = 1024;      ///< items of the semaphore, and slots of the ring
    std::uint32_t count = 2'000'000; ///< items passed in each round
    std::uint32_t round_trips = 100'000;
    std::vector<int> cores{0, 1}; ///< core of the sender, core of the receiver
};

/// An rte_ring for one producer and one consumer that holds `items` items, in memory of its own: it needs no EAL.
class ring {
 public:
    explicit ring(std::uint32_t items)
    {
        const std::uint32_t slots = std::bit_ceil(items + 1);
        auto bytes = static_cast<std::size_t>(rte_ring_get_memsize(slots));
        memory_.reset(static_cast<rte_ring*>(std::aligned_alloc(RTE_CACHE_LINE_SIZE, (bytes + 63) / 64 * 64)));
        if (!memory_ || rte_ring_init(memory_.get(), "bench", slots, RING_F_SP_ENQ | RING_F_SC_DEQ) != 0)
            throw std::runtime_error(fmt::format("semaphore_bench: cannot create an rte_ring of {} slots", slots));
    }

    void send(std::uintptr_t item)
    {
        for (std::uint32_t attempt = 0; rte_ring_sp_enqueue(memory_.get(), reinterpret_cast<void*>(item)) != 0;
             ++attempt)
            weftio_relax(attempt);
    }
    std::uintptr_t receive()
    {
        void* item = nullptr;
        for (std::uint32_t attempt = 0; rte_ring_sc_dequeue(memory_.get(), &item) != 0; ++attempt)
            weftio_relax(attempt);
        return reinterpret_cast<std::uintptr_t>(item);
    }

 private:
    struct give_back {
        void operator()(rte_ring* memory) const { std::free(memory); }
    };
    std::unique_ptr<rte_ring, give_back> memory_;
};

double seconds_since(clock::time_point start)
{
    return std::chrono::duration<double>(clock::now() - start).count();
}

void expect_all(const options& wanted, std::uint32_t right, const char* way)
{
    if (right != wanted.count)
        throw std::runtime_error(
            fmt::format("semaphore_bench: {}: {} of {} items arrived unchanged", way, right, wanted.count));
}

template <class Kernel, class... Arguments>
running_kernel launch_on(int core, const device& device, const Kernel& kernel, Arguments&&... arguments)
{
    bench::on_core here(core);
    return device.launch(kernel, {}, arguments...);
}

// Each of these functions returns items per second.

double kernel_to_kernel(const options& wanted, const device& device)
{
    semaphore between(device, {.items = wanted.items, .check_transitions = false});
    memory right = device.allocate(sizeof(std::uint32_t), memory_kind::cpu_device);
    auto start = clock::now();
    auto taking = launch_on(wanted.cores[1], device, take_kernel, between, wanted.count, right.device_address());
    auto sending = launch_on(wanted.cores[0], device, hand_over_kernel, between.handle(), wanted.count);
    taking.wait_for(patience);
    double rate = wanted.count / seconds_since(start);
    expect_all(wanted, *static_cast<std::uint32_t*>(right.cpu_address()), "kernel to kernel");
    return rate;
}

double kernel_to_cpu(const options& wanted, const device& device)
{
    semaphore between(device, {.items = wanted.items, .check_transitions = false});
    bench::on_core here(wanted.cores[1]);
    auto start = clock::now();
    auto sending = launch_on(wanted.cores[0], device, hand_over_kernel, between, wanted.count);
    std::uint32_t seen = 0, right = 0;
    for (std::uint32_t attempt = 0; seen < wanted.count; ++attempt) {
        std::uint32_t visited = between.for_each_ready(
            [&](std::uint32_t index, auto, std::uint32_t first, void*) { right += first == index; });
        seen += visited;
        if (visited)
            attempt = 0;
        weftio_relax(attempt);
    }
    double rate = wanted.count / seconds_since(start);
    expect_all(wanted, right, "kernel to CPU");
    return rate;
}

double through_ring(const options& wanted, const device&)
{
    ring between(wanted.items);
    std::uint32_t right = 0;
    auto start = clock::now();
    std::thread taking([&] {
        bench::on_core here(wanted.cores[1]);
        for (std::uint32_t item = 0; item < wanted.count; ++item)
            right += between.receive() == item;
    });
    std::thread sending([&] {
        bench::on_core here(wanted.cores[0]);
        for (std::uint32_t item = 0; item < wanted.count; ++item)
            between.send(item);
    });
    taking.join();
    double rate = wanted.count / seconds_since(start);
    sending.join();
    expect_all(wanted, right, "rte_ring");
    return rate;
}

/// Median round trip of an item in nanoseconds, of `trips` round trips.
double median_trip_ns(std::uint32_t trips, const std::function<void(std::uint32_t)>& trip)
{
    std::vector<double> taken;
    for (std::uint32_t index = 0; index < trips; ++index) {
        auto start = clock::now();
        trip(index);
        taken.push_back(1e9 * seconds_since(start));
    }
    return bench::median(std::move(taken));
}

double semaphore_round_trip(const options& wanted, const device& device)
{
    const semaphore_options shape{.items = wanted.items, .check_transitions = false};
    semaphore there(device, shape), back(device, shape);
    auto echoing = launch_on(wanted.cores[0], device, echo_kernel, there, back, wanted.round_trips);
    bench::on_core here(wanted.cores[1]);
    return median_trip_ns(wanted.round_trips, [&](std::uint32_t index) {
        std::uint32_t count = 0, first = 0; // on the CPU device, threads of the host can use a handle too
        weftio_dev_semaphore_set_packet_info(there.handle(), index, WEFTIO_DEV_SEMAPHORE_READY, 1, index);
        weftio_dev_semaphore_wait_packet_info(back.handle(), index, WEFTIO_DEV_SEMAPHORE_READY, 0, &count, &first);
        weftio_dev_semaphore_set_status(back.handle(), index, WEFTIO_DEV_SEMAPHORE_FREE);
    });
}

double ring_round_trip(const options& wanted, const device&)
{
    ring there(wanted.items), back(wanted.items);
    std::jthread echoing([&] {
        bench::on_core here(wanted.cores[0]);
        for (std::uint32_t index = 0; index < wanted.round_trips; ++index)
            back.send(there.receive());
    });
    bench::on_core here(wanted.cores[1]);
    return median_trip_ns(wanted.round_trips, [&](std::uint32_t index) {
        there.send(index);
        back.receive();
    });
}

struct measurement {
    const char* name;
    const char* peer;
    const char* unit;
    double in_unit; ///< factor from the result of `measure` to `unit`
    double (*measure)(const options&, const device&);
};

constexpr measurement all[] = {
    {"rte_ring", "", "M/s", 1e-6, through_ring},
    {"kernel to kernel", "rte_ring", "M/s", 1e-6, kernel_to_kernel},
    {"kernel to CPU", "rte_ring", "M/s", 1e-6, kernel_to_cpu},
    {"rte_ring round trip", "", "ns", 1, ring_round_trip},
    {"semaphore round trip", "rte_ring round trip", "ns", 1, semaphore_round_trip},
};

int run(const options& wanted)
{
    auto device = device::open("cpu");
    std::vector<std::vector<double>> values(std::size(all));
    for (std::uint32_t round = 0; round < wanted.rounds; ++round)
        for (std::size_t at = 0; at < std::size(all); ++at)
            values[at].push_back(all[at].measure(wanted, device) * all[at].in_unit);
    bench::table table("semaphore_bench");
    for (std::size_t at = 0; at < std::size(all); ++at)
        table.add({.name = all[at].name, .unit = all[at].unit, .values = values[at], .peer = all[at].peer});
    fmt::print("{} items a round, {} in flight, cores {}\n", wanted.count, wanted.items,
               fmt::join(wanted.cores, " to "));
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    wanted.rounds = 9;
    CLI::App app{"Rate of items from core to core, by a semaphore and by DPDK's rte_ring."};
    auto add = [&app](const char* name, auto& value, const char* what) {
        return app.add_option(name, value, what)->capture_default_str();
    };
    add("--items", wanted.items, "items of the semaphore and of the ring, a power of two")
        ->check([](const std::string& words) {
            const auto items = std::strtoul(words.c_str(), nullptr, 10);
            return std::has_single_bit(items) && items <= 1u << 20 ? ""
                                                                   : words + " is not a power of two in 1..1048576";
        });
    add("--count", wanted.count, "items handed over per round")->check(CLI::PositiveNumber);
    add("--round-trips", wanted.round_trips, "round trips per round")->check(CLI::PositiveNumber);
    bench::add_cores(app, wanted.cores, "cores of the sender and of the receiver");
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(wanted); });
}
