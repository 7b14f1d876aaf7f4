// Round trips: a flag, a frame through an engine, a burst of 32.
#include "fake_queues.hpp"
#include "gpu_bench.kernel.h"
#include "measure.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(flag_echo, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(line_echo, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(frame_round_trips, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(receive_bursts, "gpu_bench.kernel.h");
WEFTIO_DEFINE_KERNEL(answer_bursts, "gpu_bench.kernel.h");

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

/// The same with 64 bytes behind each flag; 0 if a byte was not there.
double line_round_trip_ns(const device& device)
{
    auto words = device.allocate(4096, memory_kind::cpu_device);
    auto* ping = static_cast<std::uint32_t*>(words.cpu_address());
    auto* pong = ping + 64;
    auto kernel = device.launch(line_echo_kernel, {}, ping, pong, turns);
    std::vector<std::uint64_t> times;
    bool right = true;
    for (std::uint32_t turn = 1; turn <= turns; ++turn) {
        auto begin = clock_type::now();
        std::fill_n(ping + 16, 16, turn * 2654435761u);
        weftio_store_release_sys_u32(ping, turn);
        spin_until([&] { return weftio_load_acquire_sys_u32(pong) == turn; });
        right = right && std::count(pong + 16, pong + 32, turn * 2654435761u) == 16;
        times.push_back(static_cast<std::uint64_t>((clock_type::now() - begin).count()));
    }
    kernel.wait_for(std::chrono::seconds(10));
    return right ? quantile(times, 0.5) : 0;
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

/// Medians of `turns` bursts: the time in which the thread writes 32 frames, and the time from the start to `done`.
struct burst_times {
    double written_ns, done_ns;
};
template <class Done>
burst_times time_bursts(fake_rxq& queue, Done&& done)
{
    const frame_type frame = some_frame();
    std::vector<std::uint64_t> written, all;
    for (std::uint32_t turn = 0; turn < turns; ++turn) {
        auto begin = clock_type::now();
        for (std::uint32_t i = 0; i < burst; ++i)
            queue.publish(frame.data(), frame.size());
        written.push_back(static_cast<std::uint64_t>((clock_type::now() - begin).count()));
        spin_until(done);
        all.push_back(static_cast<std::uint64_t>((clock_type::now() - begin).count()));
    }
    return {quantile(written, 0.5), quantile(all, 0.5)};
}

/// The kernel reads `read_bytes` bytes of every frame and releases all slots.
burst_times time_reading(const device& device, std::uint32_t read_bytes)
{
    fake_rxq queue(device, 1024, frame_bytes);
    shared_count sink(device);
    auto kernel =
        device.launch(receive_bursts_kernel, {.blocks = 1, .lanes = 128}, queue, sink.on_device(), read_bytes);
    return time_bursts(queue, [&] { return queue.all_released(); });
}

/// Time until the kernel has posted all 32 answers.
double burst_answered_ns(const device& device)
{
    fake_rxq in(device, 1024, frame_bytes);
    fake_txq out(device, 1024);
    auto kernel = device.launch(answer_bursts_kernel, {.blocks = 1, .lanes = 128}, in, out);
    std::uint32_t answers = 0;
    double p50 = time_bursts(in, [&, seen = 0u]() mutable {
                     answers += out.turn();
                     return answers - seen >= burst ? seen += burst : 0;
                 }).done_ns;
    return in.last_is(answered(some_frame())) ? p50 : 0;
}

} // namespace

std::vector<sample> hand_over(const device& device, const settings&)
{
    burst_times reading = time_reading(device, frame_bytes);
    return {{"flag, host-kernel-host, p50", "ns", flag_round_trip_ns(device)},
            {"flag with 64 B behind it, fenced, p50", "ns", line_round_trip_ns(device)},
            {"frame, kernel-engine-kernel, weak, p50", "ns", frame_round_trip_ns(device, false)},
            {"frame, kernel-engine-kernel, strong, p50", "ns", frame_round_trip_ns(device, true)},
            {"burst of 32 x 64 B, written by the host, p50", "ns", reading.written_ns},
            {"burst of 32 x 64 B, received, p50", "ns", time_reading(device, 0).done_ns},
            {"burst of 32 x 64 B, read, p50", "ns", reading.done_ns},
            {"burst of 32 x 64 B, answered, p50", "ns", burst_answered_ns(device)}};
}

} // namespace weftio::bench
