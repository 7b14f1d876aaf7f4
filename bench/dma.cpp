// Compares a DMA queue with memcpy() in the same run: bytes per second of long copies, and small copies per second.
//
//   ./dma_bench                         7 rounds: copies of 64 MiB, and small ones of 64 bytes
//   ./dma_bench --cores 2,4 --small 1000000 --json out.json
//   ./dma_bench -g cuda:0               also memory of a GPU, compared with consecutive cuMemcpyAsync() calls
//
// Measurements alternate, so that other load of the machine affects all of them; medians of pairs are compared. The
// committing thread runs on one core, the engine on another.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/arguments.hpp"
#include "common/on_core.hpp"
#include "common/table.hpp"
#include "devices/backend.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;
using clock = std::chrono::steady_clock;

constexpr std::size_t long_bytes = std::size_t{64} << 20;
constexpr std::uint32_t small_bytes = 64, small_span = 1 << 16; ///< size of the memory that small copies use

struct options : bench::common_options {
    std::uint32_t long_copies = 4, small_copies = 2'000'000; ///< in each round
    std::vector<int> cores{0, 1};                            ///< core of the committing thread, core of the engine
    std::string gpu;                                         ///< empty: none
};

/// Source and destination of the copies, and the queue that copies.
struct setting {
    explicit setting(const options& wanted) : engine({.idle = idle_policy::yield, .core = wanted.cores[1]})
    {
        std::memset(from.cpu_address(), 1, long_bytes);
        std::memset(to.cpu_address(), 2, long_bytes);
    }

    dma_engine engine;
    device cpu = device::open("cpu");
    dma_queue queue{engine, cpu, {.entries = 4096}};
    memory from = cpu.allocate(long_bytes, memory_kind::cpu_device),
           to = cpu.allocate(long_bytes, memory_kind::cpu_device);
    memory_region source{engine, from}, destination{engine, to};
};

double seconds_since(clock::time_point start)
{
    return std::chrono::duration<double>(clock::now() - start).count();
}

void require(std::int32_t status, const char* what)
{
    if (status != WEFTIO_DEV_OK)
        throw std::runtime_error(fmt::format("dma_bench: {} returned status {}", what, status));
}

// Each of these functions returns a rate per second: bytes, or copies.

double long_by_dma(const options& wanted, setting& where)
{
    const auto start = clock::now();
    for (std::uint32_t copy = 0; copy < wanted.long_copies; ++copy)
        require(weftio_dev_dma_memcpy(where.queue.handle(), where.source.buffer(), 0, where.destination.buffer(), 0,
                                      long_bytes, WEFTIO_DEV_SEND_NONE),
                "a long copy");
    require(weftio_dev_dma_commit_wait(where.queue.handle(), 0), "the wait for long copies");
    return static_cast<double>(wanted.long_copies * long_bytes) / seconds_since(start);
}

double long_by_memcpy(const options& wanted, setting& where)
{
    const auto start = clock::now();
    for (std::uint32_t copy = 0; copy < wanted.long_copies; ++copy) {
        std::memcpy(where.to.cpu_address(), where.from.cpu_address(), long_bytes);
        asm volatile("" ::: "memory"); // keeps the compiler from removing a copy
    }
    return static_cast<double>(wanted.long_copies * long_bytes) / seconds_since(start);
}

double small_by_dma(const options& wanted, setting& where)
{
    constexpr std::uint32_t batch = 64;
    const weftio_dev_buf from = where.source.buffer(), to = where.destination.buffer();
    weftio_dev_dma* dma = where.queue.handle();
    weftio_u32 position = 0, mask = 0;
    weftio_dev_dma_get_info(dma, &position, &mask);
    const auto start = clock::now();
    for (std::uint32_t copy = 0; copy < wanted.small_copies; copy += batch) {
        require(weftio_dev_dma_wait_room(dma, batch, 0), "the wait for space");
        for (std::uint32_t each = 0; each < batch; ++each) {
            const std::uint64_t at = std::uint64_t{copy + each} * small_bytes % small_span;
            require(weftio_dev_dma_memcpy_weak(dma, from, at, to, at, small_bytes, position++, WEFTIO_DEV_SEND_NONE),
                    "a small copy");
        }
        require(weftio_dev_dma_commit_weak(dma, batch), "the commit of small copies");
    }
    require(weftio_dev_dma_wait(dma, position - 1, 0), "the wait for small copies");
    return wanted.small_copies / seconds_since(start);
}

/// Memory of a GPU, and pinned host memory that the GPU can access.
struct gpu_setting {
    gpu_setting(const options& wanted, setting& beside) : cpu_side(beside), gpu(device::open(wanted.gpu)) {}

    setting& cpu_side;
    device gpu;
    memory pinned = gpu.allocate(long_bytes, memory_kind::cpu_device),
           near = gpu.allocate(long_bytes, memory_kind::device), other = gpu.allocate(long_bytes, memory_kind::device);
    memory_region at_host{cpu_side.engine, pinned}, at_gpu{cpu_side.engine, near}, beside{cpu_side.engine, other};
    std::shared_ptr<devices::copy_queue> stream = detail::internals::make_copy_queue(gpu);
    std::uint32_t batches = 0;
};

/// Makes `count` copies of `bytes` bytes by the queue. Returns the seconds that they took.
double by_queue(gpu_setting& where, const memory_region& from, const memory_region& to, std::size_t bytes,
                std::uint32_t count)
{
    dma_queue& queue = where.cpu_side.queue;
    const auto start = clock::now();
    for (std::uint32_t copy = 0; copy < count; ++copy) {
        require(weftio_dev_dma_wait_room(queue.handle(), 1, 0), "the wait for space");
        require(weftio_dev_dma_memcpy(queue.handle(), from.buffer(), 0, to.buffer(), 0, bytes, WEFTIO_DEV_SEND_NONE),
                "a copy to or from a GPU");
        if (copy % 16 == 15)
            weftio_dev_dma_commit(queue.handle());
    }
    require(weftio_dev_dma_commit_wait(queue.handle(), 0), "the wait for copies to or from a GPU");
    return seconds_since(start);
}

/// As by_queue(), by consecutive calls of cuMemcpyAsync().
double by_stream(gpu_setting& where, const memory& from, const memory& to, std::size_t bytes, std::uint32_t count)
{
    const auto start = clock::now();
    for (std::uint32_t copy = 0; copy < count; ++copy)
        where.stream->copy(to.device_address(), from.device_address(),
                           {.bytes = bytes, .count = 1, .to_stride = bytes, .from_stride = bytes});
    where.stream->mark(++where.batches);
    while (where.stream->completed() != where.batches)
        weftio_relax(0);
    return seconds_since(start);
}

struct measurement {
    std::string name, peer;
    const char* unit;
    double in_unit;                  ///< factor from the result of `measure` to `unit`
    std::function<double()> measure; ///< returns a rate per second
    bool on_the_engines_core = false;
};

std::vector<measurement> with_the_cpu(const options& wanted, setting& where)
{
    return {{"memcpy 64 MiB", "", "GB/s", 1e-9, [&] { return long_by_memcpy(wanted, where); }, true},
            {"dma 64 MiB", "memcpy 64 MiB", "GB/s", 1e-9, [&] { return long_by_dma(wanted, where); }},
            {"dma 64 bytes", "", "M/s", 1e-6, [&] { return small_by_dma(wanted, where); }}};
}

std::vector<measurement> with_a_gpu(gpu_setting& where)
{
    struct way {
        const char* name;
        const memory &from, &to;
        const memory_region &source, &destination;
    };
    const way ways[] = {{"to the GPU", where.pinned, where.near, where.at_host, where.at_gpu},
                        {"from the GPU", where.near, where.pinned, where.at_gpu, where.at_host},
                        {"within the GPU", where.near, where.other, where.at_gpu, where.beside}};
    std::vector<measurement> all;
    auto add = [&](const std::string& what, const way& way, std::size_t bytes, std::uint32_t count, const char* unit,
                   double in_unit) {
        const std::string peer = fmt::format("cuMemcpyAsync {} {}", what, way.name);
        all.push_back({peer, "", unit, in_unit, [&where, way, bytes, count] {
                           return count / by_stream(where, way.from, way.to, bytes, count);
                       }});
        all.push_back({fmt::format("dma {} {}", what, way.name), peer, unit, in_unit, [&where, way, bytes, count] {
                           return count / by_queue(where, way.source, way.destination, bytes, count);
                       }});
    };
    for (const way& each : ways) {
        add("64 MiB", each, long_bytes, 32, "GB/s", 1e-9 * static_cast<double>(long_bytes));
        add("64 bytes", each, small_bytes, 20'000, "M/s", 1e-6);
    }
    return all;
}

int run(options wanted)
{
    wanted.small_copies = (wanted.small_copies + 63) / 64 * 64;
    setting where(wanted);
    std::optional<gpu_setting> gpu;
    std::vector<measurement> all = with_the_cpu(wanted, where);
    if (!wanted.gpu.empty())
        std::ranges::move(with_a_gpu(gpu.emplace(wanted, where)), std::back_inserter(all));
    std::vector<std::vector<double>> values(all.size());
    for (std::uint32_t round = 0; round < wanted.rounds; ++round)
        for (std::size_t at = 0; at < all.size(); ++at) {
            bench::on_core here(wanted.cores[all[at].on_the_engines_core]); // memcpy() runs on the engine's core
            values[at].push_back(all[at].measure() * all[at].in_unit);
        }
    bench::table table("dma_bench");
    for (std::size_t at = 0; at < all.size(); ++at)
        table.add({.name = all[at].name, .unit = all[at].unit, .values = values[at], .peer = all[at].peer});
    fmt::print("{} long copies and {} small ones a round, cores {}\n", wanted.long_copies, wanted.small_copies,
               fmt::join(wanted.cores, " to "));
    table.finish(wanted.json);
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    options wanted;
    wanted.rounds = 7;
    CLI::App app{"Speed of a DMA queue, for long and small pieces, compared with memcpy()."};
    app.add_option("--long", wanted.long_copies, "copies of 64 MiB per round")
        ->check(CLI::Range(1u, 1000u))
        ->capture_default_str();
    app.add_option("--small", wanted.small_copies, "copies of 64 bytes per round")
        ->check(CLI::Range(64u, 1u << 30))
        ->capture_default_str();
    app.add_option("-g,--gpu", wanted.gpu, "also copy memory of this GPU: cuda:N");
    bench::add_cores(app, wanted.cores, "cores of the committing thread and of the engine");
    bench::add_rounds(app, wanted);
    bench::add_json(app, wanted);
    if (auto status = bench::read_words(app, argc, argv))
        return *status;
    return bench::ending([&] { return run(wanted); });
}
