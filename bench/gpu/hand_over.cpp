// Round trips: a flag, a frame through an engine, a burst of 32.
#include "gpu.kernel.h"
#include "measure.hpp"
#include "played_nic.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(flag_echo, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(frame_round_trips, "gpu.kernel.h");
WEFTIO_DEFINE_KERNEL(receive_bursts, "gpu.kernel.h");

namespace weftio::bench {

namespace {

constexpr std::uint32_t turns = 20000;

template <class Ready>
void spin_until(Ready&& ready)
{
    for (auto begin = clock_type::now(); !ready() && clock_type::now() - begin < std::chrono::seconds(10);) {
    }
}

double flag_round_trip_ns(const device& device)
{
    auto words = device.allocate(4096, memory_kind::cpu_device);
    auto* ping = static_cast<std::uint32_t*>(words.cpu_address());
    auto* pong = ping + 64;
    auto kernel = device.launch(flag_echo_kernel, {}, ping, pong, turns);
    std::vector<std::uint64_t> times;
    for (std::uint32_t turn = 1; turn <= turns; ++turn) {
        auto begin = clock_type::now();
        weftio_store_release_sys_u32(ping, turn);
        spin_until([&] { return weftio_load_acquire_sys_u32(pong) == turn; });
        times.push_back(static_cast<std::uint64_t>((clock_type::now() - begin).count()));
    }
    kernel.wait_for(std::chrono::seconds(10));
    return quantile(times, 0.5);
}

double frame_round_trip_ns(const device& device, bool strong)
{
    auto port = port::open("loopback", busy_port());
    eth_rxq rx(port, device, {.packets = 256, .verify_checksums = false});
    eth_txq tx(port, device, {.entries = 256});
    buf_arr frames(port, device, {.count = 256, .buffer_bytes = 64});
    flow all(port, {}, flow_action::to(rx));
    auto times = device.allocate(turns * sizeof(std::uint64_t), memory_kind::cpu_device);
    auto* first = static_cast<std::uint64_t*>(times.cpu_address());
    auto kernel = device.launch(frame_round_trips_kernel, {}, rx, tx, frames, strong, turns, first);
    if (!kernel.wait_for(std::chrono::seconds(60)))
        return 0;
    return quantile({first, first + turns}, 0.5);
}

double burst_round_trip_ns(const device& device)
{
    played_rxq queue(device, 1024, 64);
    shared_count sink(device);
    std::array<std::byte, 64> packet{};
    auto kernel = device.launch(receive_bursts_kernel, {.blocks = 1, .lanes = 128}, queue, sink.on_device(), 64u);
    std::vector<std::uint64_t> times;
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
        auto begin = clock_type::now();
        for (int i = 0; i < 32; ++i)
            queue.publish(packet.data(), packet.size());
        spin_until([&] { return queue.all_released(); });
        times.push_back(static_cast<std::uint64_t>((clock_type::now() - begin).count()));
    }
    return quantile(times, 0.5);
}

} // namespace

std::vector<sample> hand_over(const device& device)
{
    return {{"flag, host-kernel-host, p50", "ns", flag_round_trip_ns(device)},
            {"frame, kernel-engine-kernel, weak, p50", "ns", frame_round_trip_ns(device, false)},
            {"frame, kernel-engine-kernel, strong, p50", "ns", frame_round_trip_ns(device, true)},
            {"burst of 32 x 64 B, host-kernel-host, p50", "ns", burst_round_trip_ns(device)}};
}

} // namespace weftio::bench
