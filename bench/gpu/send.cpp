// Posting rates of kernels and send rates of engines.
#include <fmt/format.h>

#include "fake_queues.hpp"
#include "gpu_bench.kernel.h"
#include "measure.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(post_entries, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(store_lines, "gpu_bench.kernel.h");

namespace weftio::bench {

namespace {

constexpr std::uint32_t depth = 32768, most_blocks = 65;

/// Counts of blocks, each on a cache line of its own, and scratch words for block sums.
class tallies {
 public:
    explicit tallies(const device& device)
        : counts_(device.allocate(most_blocks * 64, memory_kind::cpu_device)),
          scratch_(device.allocate(most_blocks * 4, memory_kind::device))
    {}
    weftio_u64* counts() const { return static_cast<weftio_u64*>(counts_.device_address()); }
    weftio_u32* scratch() const { return static_cast<weftio_u32*>(scratch_.device_address()); }
    std::uint64_t sum() const
    {
        std::uint64_t sum = 0;
        for (std::uint32_t block = 0; block < most_blocks; ++block)
            sum += weftio_load_acquire_sys_u64(static_cast<const weftio_u64*>(counts_.cpu_address()) +
                                               std::size_t{block} * 8);
        return sum;
    }

 private:
    memory counts_, scratch_;
};

/// Rate of the kernel that `launch` starts, on a ring in pinned memory whose entries are completed at once.
template <class Launch>
double posted_millions(const device& device, const settings& settings, Launch&& launch)
{
    auto port = port::open("null");
    buf_arr frames(port, device, {.count = 1024, .buffer_bytes = 64});
    fake_txq queue(device, depth);
    tallies tallies(device);
    repeating_thread nic([&queue] { queue.turn(); });
    running_kernel kernel = launch(queue, frames, tallies);
    return millions_a_second(settings, [&] { return tallies.sum(); });
}

/// The same of post_entries.
double posted_millions(const device& device, const settings& settings, std::uint32_t how, grid shape,
                       std::uint32_t ahead)
{
    return posted_millions(device, settings, [&](auto& queue, auto& frames, auto& tallies) {
        return device.launch(post_entries_kernel, shape, queue, frames, how, ahead, 0u, tallies.counts(),
                             tallies.scratch());
    });
}

/// The same on a ring in the memory of the device, whose entries a further block completes.
double posted_millions_near(const device& device, const settings& settings, std::uint32_t how, grid shape,
                            std::uint32_t ahead)
{
    auto port = port::open("null");
    buf_arr frames(port, device, {.count = 1024, .buffer_bytes = 64});
    fake_txq queue(device, depth, memory_kind::device);
    tallies tallies(device);
    ++shape.blocks;
    running_kernel kernel =
        device.launch(post_entries_kernel, shape, queue, frames, how, ahead, 1u, tallies.counts(), tallies.scratch());
    return millions_a_second(settings, [&] { return tallies.sum(); });
}

double sent_mpps(const device& device, const settings& settings, std::uint32_t lanes, std::uint32_t bytes = 64,
                 memory_kind from = memory_kind::cpu_device)
{
    auto port = port::open("null", busy_port());
    eth_txq tx(port, device, {.entries = 8192});
    memory room = device.allocate(std::size_t{8192} * bytes, from);
    memory_region region(port, room);
    buf_arr frames(region, device, {.count = 8192, .buffer_bytes = bytes});
    tallies tallies(device);
    auto kernel = device.launch(post_entries_kernel, {.blocks = 1, .lanes = lanes}, tx, frames, POST_WEAK, 1u, 0u,
                                tallies.counts(), tallies.scratch());
    return millions_a_second(settings, [&] { return tx.counters().sent; });
}

} // namespace

std::vector<sample> send_rates(const device& device, const settings& settings)
{
    std::vector<sample> samples;
    auto add = [&](std::string what, double value) { samples.push_back({std::move(what), "M/s", value}); };
    add("plain stores of 64 B, 1024 lanes", posted_millions(device, settings, [&](auto& queue, auto&, auto& tallies) {
            return device.launch(store_lines_kernel, {.blocks = 1, .lanes = 1024}, queue, 8u, tallies.counts(),
                                 tallies.scratch());
        }));
    for (std::uint32_t lanes : {32u, 256u, 1024u})
        add(fmt::format("posted weak, {} lanes", lanes), posted_millions(device, settings, POST_WEAK, {1, lanes}, 8));
    for (grid shape : {grid{1, 32}, grid{1, 256}, grid{1, 1024}, grid{8, 256}})
        add(fmt::format("posted strong, {} x {} lanes", shape.blocks, shape.lanes),
            posted_millions(device, settings, POST_LANES, shape, 8));
    for (grid shape : {grid{1, 256}, grid{8, 256}, grid{64, 256}})
        add(fmt::format("posted by blocks that reserve, {} x {} lanes", shape.blocks, shape.lanes),
            posted_millions(device, settings, POST_BLOCK, shape, 1));
    for (std::uint32_t lanes : {1u, 256u, 1024u})
        samples.push_back(
            {fmt::format("sent by the engine, weak, {} lanes", lanes), "Mpps", sent_mpps(device, settings, lanes)});
    if (device.name().starts_with("cuda"))
        for (std::uint32_t bytes : {64u, 1472u})
            samples.push_back({fmt::format("sent from the GPU's memory, {} B, 256 lanes", bytes), "Mpps",
                               sent_mpps(device, settings, 256, bytes, memory_kind::device)});
    return samples;
}

std::vector<sample> posting_rates(const device& device, const settings& settings)
{
    struct way {
        const char* name;
        std::uint32_t how, ahead;
    };
    constexpr std::array ways{way{"weak, 1 a lane", POST_WEAK, 1},    way{"weak, 8 a lane", POST_WEAK, 8},
                              way{"lanes, 1 each", POST_LANES, 1},    way{"lanes, 8 each", POST_LANES, 8},
                              way{"blocks, 1 a lane", POST_BLOCK, 1}, way{"blocks, 8 a lane", POST_BLOCK, 8},
                              way{"warps, each rings", POST_WARPS, 1}};
    constexpr std::array shapes{grid{1, 32}, grid{1, 256}, grid{1, 1024}, grid{8, 256}, grid{64, 256}};
    std::vector<sample> samples;
    for (const way& each : ways)
        for (const grid& shape : shapes)
            if ((each.how != POST_WEAK || shape.blocks == 1) && shape.blocks * shape.lanes * each.ahead <= depth)
                samples.push_back({fmt::format("{}, {} x {}", each.name, shape.blocks, shape.lanes), "M/s",
                                   posted_millions_near(device, settings, each.how, shape, each.ahead)});
    return samples;
}

} // namespace weftio::bench
