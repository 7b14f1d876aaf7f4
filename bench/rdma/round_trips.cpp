#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "rdma/launch.hpp"
#include "rdma/measure.hpp"
#include "rdma/rdma.kernel.h"

WEFTIO_DEFINE_KERNEL(rdma_bench_ping_pong, "rdma/rdma.kernel.h");
WEFTIO_DEFINE_KERNEL(rdma_bench_frame_trips, "rdma/rdma.kernel.h");

namespace weftio::bench {

namespace {

/// Results that kernels store about their round trips.
class notes {
 public:
    notes(const device& device, std::uint32_t trips)
        : trips_(trips), taken_(device.allocate(trips * sizeof(std::uint32_t), memory_kind::cpu_device)),
          right_(device.allocate(2 * sizeof(std::uint32_t), memory_kind::cpu_device))
    {}
    /// Durations of the trips; nullptr for the end that answers.
    std::uint32_t* taken_ns(unsigned end) const
    {
        return end == 0 ? static_cast<std::uint32_t*>(taken_.device_address()) : nullptr;
    }
    std::uint32_t* right(unsigned end) const { return static_cast<std::uint32_t*>(right_.device_address()) + end; }
    round_trips sum_up(std::array<running_kernel, 2>& kernels) const;

 private:
    std::uint32_t trips_;
    memory taken_, right_;
};

round_trips notes::sum_up(std::array<running_kernel, 2>& kernels) const
{
    for (running_kernel& kernel : kernels)
        if (!kernel.wait_for(patience))
            throw error(errc::device_error, "rdma_bench: round trips did not end within 30 s");
    if (*right(0) != trips_ || *right(1) != trips_)
        throw error(errc::device_error,
                    fmt::format("rdma_bench: of {} round trips, {} arrived unchanged and {} returned unchanged", trips_,
                                *right(1), *right(0)));
    std::uint32_t* const all = taken_ns(0);
    std::sort(all, all + trips_);
    return {.median_us = all[trips_ / 2] * 1e-3, .p99_us = all[trips_ - 1 - trips_ / 100] * 1e-3};
}

/// One end of round trips of Ethernet frames.
struct frame_end {
    frame_end(const port& port, const weftio::port& peer, const device& device)
        : in(port, device, {.packets = 64, .verify_checksums = false}), out(port, device, {.entries = 64}),
          frame(port, device, {.count = 1, .buffer_bytes = 60}), everything(port, flow_match{}, flow_action::to(in))
    {
        auto* const header = static_cast<std::uint8_t*>(frame.cpu_address(0));
        std::ranges::copy(peer.mac(), header);
        header[12] = 0x88, header[13] = 0xb5; // EtherType for local experiments
    }

    eth_rxq in;
    eth_txq out;
    buf_arr frame;
    flow everything;
};

} // namespace

round_trips ping_pong(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t trips)
{
    const rdma_pair pair = setup.pair();
    const notes noted(setup.cpu, trips);
    std::vector<buf_arr> memories;
    for (unsigned end = 0; end < 2; ++end) {
        std::memset(setup.memory(end).memory.cpu_address(), 0, RDMA_BENCH_SIGNAL + sizeof(std::uint64_t));
        memories.emplace_back(setup.memory(end).region, setup.cpu, buf_arr_options{.count = 1, .buffer_bytes = 4096});
    }
    std::array<running_kernel, 2> kernels;
    for (unsigned end : {1u, 0u})
        kernels[end] = launch_on(end == 0 ? cores.near_kernel : cores.peer_kernel, setup.cpu,
                                 rdma_bench_ping_pong_kernel, pair.ends[end], setup.memory(1 - end).remote,
                                 memories[end], setup.cpu.clock(), trips, noted.taken_ns(end), noted.right(end));
    return noted.sum_up(kernels);
}

round_trips frame_ping_pong(const rdma_setup& setup, const rdma_cores& cores, std::uint32_t trips)
{
    const frame_end near(setup.at_end(0), setup.at_end(1), setup.cpu),
        peer(setup.at_end(1), setup.at_end(0), setup.cpu);
    const notes noted(setup.cpu, trips);
    std::array<running_kernel, 2> kernels;
    for (unsigned end : {1u, 0u}) {
        const frame_end& at = end == 0 ? near : peer;
        kernels[end] =
            launch_on(end == 0 ? cores.near_kernel : cores.peer_kernel, setup.cpu, rdma_bench_frame_trips_kernel, at.in,
                      at.out, at.frame, setup.cpu.clock(), trips, noted.taken_ns(end), noted.right(end));
    }
    return noted.sum_up(kernels);
}

} // namespace weftio::bench
