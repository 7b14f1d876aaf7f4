// Cost of a packet in the software NIC, on one core and a port that costs almost nothing (DPDK's net_null).
//
// Measures the cost of Weftio: steering, completions, entries, mbufs. A real port adds the cost of its driver.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

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

/// A port that always has a burst of frames, waits while no slot is free, and accepts every sent frame. The calling
/// thread runs its engine.
port endless_port(std::uint32_t frame_bytes)
{
    return port::open(fmt::format("net_null0,size={}", frame_bytes),
                      {.mode = engine_mode::inline_worker, .hold_when_full = port_options::hold::on});
}

/// Writes a UDP packet into each slot. net_null receives into the slots and writes no bytes, so these packets arrive.
void put_packets(const eth_rxq& queue, std::uint32_t frame_bytes)
{
    constexpr std::uint32_t headers_bytes = 14 + 20 + 8;
    const frames::bytes frame =
        frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, frame_bytes - headers_bytes)));
    const weftio_dev_eth_rxq& rxq = *queue.handle();
    for (std::size_t slot = 0; slot < queue.packets(); ++slot)
        std::memcpy(rxq.slots + slot * rxq.stride_bytes, frame.data(), frame.size());
}

/// Reports the cost of `packets`, and fails if the port has delivered fewer or dropped any.
void report(benchmark::State& state, const port& port, std::uint64_t packets)
{
    if (packets == 0 || port.counters().delivered < packets || port.counters().dropped_total() != 0)
        state.SkipWithError("packets are missing");
    bench::report_packets(state, packets);
}

/// The receive side of the engine alone: receives a burst, steers it by a rule that matches all packets, completes it.
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
        weftio_dev_post_receive(queue.handle()->dbrec, packets + queue.packets()); // as a kernel's release does
    }
    report(state, port, packets);
}
BENCHMARK(receive_turn)->ArgNames({"bytes", "verify"})->ArgsProduct({{64, 1514}, {0, 1}});

/// A kernel of one lane that runs the engine itself: receives from the driver, reads each packet, releases the slots.
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

/// A forwarder: swaps the addresses, sends the packet from its receive slot, releases the slot after the send.
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
        state.SkipWithError("some frames were not sent");
    report(state, port, packets);
}
BENCHMARK(forward_path)->ArgName("bytes")->Arg(64)->Arg(1514);

enum mode { strong, weak };

/// Enqueues, commits and pushes. The push runs the engine, which hands the burst to the driver and completes it.
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
        state.SkipWithError("some frames were not sent");
    bench::report_packets(state, packets);
}
BENCHMARK_CAPTURE(send_path, strong, strong)->ArgName("bytes")->Arg(64)->Arg(1514);
BENCHMARK_CAPTURE(send_path, weak, weak)->ArgName("bytes")->Arg(64)->Arg(1514);

double cpu_seconds()
{
    timespec used{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

/// What the engine's thread takes of a core while nothing comes: nanoseconds in each microsecond.
void idle_port(benchmark::State& state, idle_policy idle)
{
    constexpr unsigned us_a_step = 50'000;
    port port = port::open("loopback", {.idle = idle});
    device cpu = device::open("cpu");
    rdma_device at(port, {.address = "10.0.0.1"});
    std::vector<eth_rxq> in;
    std::vector<eth_txq> out;
    std::vector<rdma_queue> pairs;
    for (int each = 0; each < state.range(0); ++each) {
        in.emplace_back(port, cpu);
        out.emplace_back(port, cpu);
        pairs.emplace_back(at, cpu);
    }
    for (auto _ : state) {
        const double before = cpu_seconds();
        std::this_thread::sleep_for(std::chrono::microseconds(us_a_step));
        state.SetIterationTime(cpu_seconds() - before);
    }
    bench::report_packets_of_turns(state, us_a_step);
}
BENCHMARK_CAPTURE(idle_port, sleep, idle_policy::sleep)->ArgName("queues")->Arg(1)->Arg(64)->UseManualTime();

} // namespace
