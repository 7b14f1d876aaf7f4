// Packets a second through the software NIC, on one core and a port that costs next to nothing (DPDK's net_null).
//
// Counts what Weftio costs: steering, completions, entries, mbufs. A real port adds its driver's share.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "../tests/unit/steering/frames.hpp"
#include "nic/soft/soft_port.hpp"
#include "rates.hpp"
#include "weftio/weftio.hpp"

namespace {

using namespace weftio;

constexpr std::uint32_t burst = 64;
constexpr std::uint64_t patience_ns = 1'000'000'000;

/// A port that always has a burst of frames, waits while there is no slot, and takes whatever is sent. Driven by the
/// thread that uses it.
port endless_port(std::uint32_t frame_bytes)
{
    return port::open(fmt::format("net_null0,size={}", frame_bytes),
                      {.mode = engine_mode::inline_worker, .hold_when_full = port_options::hold::on});
}

/// net_null writes no bytes, and it fills the slots themselves: what lies in them arrives. A UDP packet in each.
void put_packets(const eth_rxq& queue, std::uint32_t frame_bytes)
{
    constexpr std::uint32_t headers_bytes = 14 + 20 + 8;
    const frames::bytes frame =
        frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, frame_bytes - headers_bytes)));
    const weftio_dev_eth_rxq& rxq = *queue.handle();
    for (std::size_t slot = 0; slot < queue.packets(); ++slot)
        std::memcpy(rxq.slots + slot * rxq.stride_bytes, frame.data(), frame.size());
}

/// What `packets` cost, checked against what the port says it delivered.
void report(benchmark::State& state, const port& port, std::uint64_t packets)
{
    if (packets == 0 || port.counters().delivered < packets || port.counters().dropped_total() != 0)
        state.SkipWithError("packets are missing");
    bench::report_packets(state, packets);
}

/// The engine's receive turn alone: burst, steer by a rule that wants everything, complete.
void receive_turn(benchmark::State& state)
{
    port port = endless_port(static_cast<std::uint32_t>(state.range(0)));
    eth_rxq queue(port, device::open("cpu"), {.verify_checksums = state.range(1) != 0});
    put_packets(queue, static_cast<std::uint32_t>(state.range(0)));
    flow flow(port, {}, flow_action::to(queue));
    nic::soft::receiver& receiver = dynamic_cast<nic::soft::soft_port&>(detail::internals::backend(port)).receiver();
    std::uint32_t packets = 0;
    for (auto _ : state) {
        packets += receiver.turn();
        weftio_dev_post_receive(queue.handle()->dbrec, packets + queue.packets()); // what a kernel's release does
    }
    report(state, port, packets);
}
BENCHMARK(receive_turn)->ArgNames({"bytes", "verify"})->ArgsProduct({{64, 1514}, {0, 1}});

/// A kernel of one lane that drives the engine itself: from the driver to the kernel's eyes and back to the ring.
void receive_path(benchmark::State& state)
{
    port port = endless_port(static_cast<std::uint32_t>(state.range(0)));
    eth_rxq queue(port, device::open("cpu"), {.verify_checksums = state.range(1) != 0});
    put_packets(queue, static_cast<std::uint32_t>(state.range(0)));
    flow flow(port, {}, flow_action::to(queue));
    std::uint64_t packets = 0;
    for (auto _ : state) {
        std::uint32_t count = 0, first = 0;
        weftio_dev_eth_rxq_receive_thread(queue.handle(), burst, patience_ns, &count, &first);
        for (std::uint32_t at = 0; at < count; ++at) {
            weftio_dev_packet packet;
            if (weftio_dev_eth_rxq_packet(queue.handle(), first + at, &packet) == WEFTIO_DEV_OK)
                benchmark::DoNotOptimize(packet.address[0]);
        }
        weftio_dev_eth_rxq_release(queue.handle(), first, count);
        packets += count;
    }
    report(state, port, packets);
}
BENCHMARK(receive_path)->ArgNames({"bytes", "verify"})->ArgsProduct({{64, 1514}, {0, 1}});

/// As a forwarder does: swap the addresses, send from where the packet lies, release once it has been sent.
void forward_path(benchmark::State& state)
{
    port port = endless_port(static_cast<std::uint32_t>(state.range(0)));
    device cpu = device::open("cpu");
    eth_rxq in(port, cpu, {.verify_checksums = false});
    put_packets(in, static_cast<std::uint32_t>(state.range(0)));
    eth_txq out(port, cpu);
    flow flow(port, {}, flow_action::to(in));
    std::uint64_t packets = 0;
    for (auto _ : state) {
        std::uint32_t count = 0, first = 0;
        weftio_dev_eth_rxq_receive_thread(in.handle(), burst, patience_ns, &count, &first);
        for (std::uint32_t at = 0; at < count; ++at) {
            weftio_dev_packet packet;
            if (weftio_dev_eth_rxq_packet(in.handle(), first + at, &packet) != WEFTIO_DEV_OK)
                break;
            std::swap_ranges(packet.address, packet.address + 6, packet.address + 6);
            weftio_dev_eth_txq_send_enqueue_strong(out.handle(), weftio_dev_eth_rxq_buf(in.handle(), first + at),
                                                   packet.bytes, WEFTIO_DEV_SEND_NONE);
        }
        weftio_dev_eth_txq_commit_strong(out.handle());
        weftio_dev_eth_txq_push(out.handle());
        weftio_dev_eth_txq_wait_room(out.handle(), out.entries(), patience_ns);
        weftio_dev_eth_rxq_release(in.handle(), first, count);
        packets += count;
    }
    if (out.counters().sent != packets)
        state.SkipWithError("not everything was sent");
    report(state, port, packets);
}
BENCHMARK(forward_path)->ArgName("bytes")->Arg(64)->Arg(1514);

enum mode { strong, weak };

/// Enqueue, commit, push: the push runs the engine, which hands the burst to the driver and completes it.
void send_path(benchmark::State& state, mode mode)
{
    constexpr std::uint32_t frames = 32;
    const auto bytes = static_cast<std::uint32_t>(state.range(0));
    port port = port::open("net_null0", {.mode = engine_mode::inline_worker});
    device cpu = device::open("cpu");
    eth_txq queue(port, cpu);
    buf_arr buffers(port, cpu, {.count = frames, .buffer_bytes = bytes});
    std::uint32_t position = 0, mask = 0;
    weftio_dev_eth_txq_get_info(queue.handle(), &position, &mask);
    for (auto _ : state) {
        for (std::uint32_t at = 0; at < frames; ++at, ++position) {
            weftio_dev_buf buffer = weftio_dev_buf_get(buffers.handle(), at);
            if (mode == strong)
                weftio_dev_eth_txq_send_enqueue_strong(queue.handle(), buffer, bytes, WEFTIO_DEV_SEND_NONE);
            else
                weftio_dev_eth_txq_send_enqueue_weak(queue.handle(), buffer, bytes, position, WEFTIO_DEV_SEND_NONE);
        }
        if (mode == strong)
            weftio_dev_eth_txq_commit_strong(queue.handle());
        else
            weftio_dev_eth_txq_commit_weak(queue.handle(), frames);
        weftio_dev_eth_txq_push(queue.handle());
        weftio_dev_eth_txq_wait_room(queue.handle(), frames, patience_ns);
    }
    const std::uint64_t packets = static_cast<std::uint64_t>(state.iterations()) * frames;
    if (queue.counters().sent != packets)
        state.SkipWithError("not everything was sent");
    bench::report_packets(state, packets);
}
BENCHMARK_CAPTURE(send_path, strong, strong)->ArgName("bytes")->Arg(64)->Arg(1514);
BENCHMARK_CAPTURE(send_path, weak, weak)->ArgName("bytes")->Arg(64)->Arg(1514);

} // namespace
