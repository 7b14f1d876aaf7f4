// Cost of the rings: time per packet of the kernel and of the NIC, without the bytes of the packet. No port, no engine.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "keys/key_table.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/receive/rx_queue.hpp"
#include "nic/soft/send/ethernet_entry.hpp"
#include "rates.hpp"
#include "weftio/device.hpp"
#include "weftio/device/eth_rxq.h"
#include "weftio/device/eth_txq.h"

namespace {

using namespace weftio;
using seconds = std::chrono::duration<double>;

constexpr std::uint32_t depth = 1024, log_depth = 10;
constexpr std::uint32_t frame_bytes = 64;

/// A receive ring. The NIC's side is the class that the engine uses; the kernel's side is the handle.
struct receive_ring {
    receive_ring()
    {
        for (weftio_cqe& completion : completions)
            completion.publication = WEFTIO_CQE_NEVER_WRITTEN << 24;
        rxq.completions = {completions.data(), depth - 1, log_depth};
        rxq.dbrec = &dbrec;
        rxq.control = &control;
        rxq.stride_bytes = frame_bytes;
        weftio_dev_post_receive(&dbrec, depth);
    }
    receive_ring(const receive_ring&) = delete;

    /// Publishes up to `count` packets. Returns the number for which a slot was free.
    std::uint32_t publish(std::uint32_t count)
    {
        constexpr nic::soft::rx_facts facts{.real_time = std::uint64_t{1'700'000'000} << 32};
        const weftio_cqe model = nic.model(facts);
        nic::soft::completions out(nic, model);
        while (out.count() < count && nic.has_room())
            out.add(nic.take_slot(), frame_bytes);
        return out.count();
    }
    /// Receives `burst` packets in one lane and releases them. Returns their bytes.
    std::uint32_t take(std::uint32_t burst)
    {
        std::uint32_t count = 0, first = 0, bytes = 0;
        weftio_dev_eth_rxq_receive_thread(&rxq, burst, 1, &count, &first);
        for (std::uint32_t at = 0; at < count; ++at) {
            weftio_dev_packet packet;
            if (weftio_dev_eth_rxq_packet(&rxq, first + at, &packet) == WEFTIO_DEV_OK)
                bytes += packet.bytes;
        }
        weftio_dev_eth_rxq_release(&rxq, first, count);
        return bytes;
    }

    std::vector<weftio_cqe> completions{depth};
    alignas(64) std::uint32_t dbrec = 0;
    alignas(64) weftio_dev_control control{};
    alignas(64) weftio_dev_eth_rxq rxq{};
    nic::soft::rx_queue nic{{.completions = completions.data(),
                             .dbrec = &dbrec,
                             .slots = nullptr,
                             .depth = depth,
                             .stride_bytes = frame_bytes,
                             .slot_bytes = frame_bytes,
                             .number = 0,
                             .verify_checksums = false}};
};

void receive_publish(benchmark::State& state)
{
    receive_ring ring;
    std::uint32_t published = 0;
    for (auto _ : state) {
        published += ring.publish(64);
        weftio_dev_post_receive(&ring.dbrec, published + depth);
    }
    bench::report_packets_of_turns(state, 64);
}
BENCHMARK(receive_publish);

/// The kernel's side only, one burst per call: the NIC publishes outside the measured time.
void receive_one_lane(benchmark::State& state)
{
    constexpr std::uint32_t round = depth / 2;
    const auto burst = static_cast<std::uint32_t>(state.range(0));
    receive_ring ring;
    for (auto _ : state) {
        ring.publish(round);
        auto start = std::chrono::steady_clock::now();
        for (std::uint32_t taken = 0; taken < round; taken += burst)
            benchmark::DoNotOptimize(ring.take(burst));
        state.SetIterationTime(seconds(std::chrono::steady_clock::now() - start).count());
    }
    bench::report_packets_of_turns(state, round);
}
BENCHMARK(receive_one_lane)->ArgName("burst")->Arg(1)->Arg(32)->UseManualTime();

constexpr std::uint32_t rounds_a_launch = 256, round_packets = depth / 2,
                        launch_packets = rounds_a_launch * round_packets;

/// Argument of the kernel that runs in a block of fibers.
struct rounds {
    receive_ring ring;
    double seconds_taken = 0;
    std::uint64_t bytes = 0;
};

/// All lanes receive together and divide the packets among them. Between rounds, lane 0 acts as the NIC; it also
/// measures the time.
void take_in_rounds(rounds* given)
{
    weftio_dev_eth_rxq* rxq = &given->ring.rxq;
    std::uint64_t bytes = 0;
    for (std::uint32_t round = 0; round < rounds_a_launch; ++round) {
        if (weftio_lane() == 0)
            given->ring.publish(round_packets);
        weftio_block_barrier();
        auto start = std::chrono::steady_clock::now();
        std::uint32_t count = 0, first = 0;
        weftio_dev_eth_rxq_receive_block(rxq, round_packets, 1, &count, &first);
        for (std::uint32_t at = weftio_lane(); at < count; at += weftio_block_lanes()) {
            weftio_dev_packet packet;
            if (weftio_dev_eth_rxq_packet(rxq, first + at, &packet) == WEFTIO_DEV_OK)
                bytes += packet.bytes;
        }
        weftio_block_barrier();
        if (weftio_lane() == 0) {
            weftio_dev_eth_rxq_release(rxq, first, count);
            given->seconds_taken += seconds(std::chrono::steady_clock::now() - start).count();
        }
    }
    given->bytes += bytes; // not atomic: all lanes are fibers of one thread
}

void receive_fiber_lanes(benchmark::State& state)
{
    const kernel<rounds*> kernel{.name = "take_in_rounds", .function = take_in_rounds, .source = {}, .cuda_image = {}};
    const auto lanes = static_cast<std::uint32_t>(state.range(0));
    device device = device::open("cpu");
    rounds given;
    for (auto _ : state) {
        given.seconds_taken = 0;
        device.launch(kernel, {.blocks = 1, .lanes = lanes}, &given).wait_for(std::chrono::minutes(1));
        state.SetIterationTime(given.seconds_taken);
    }
    if (given.bytes != static_cast<std::uint64_t>(state.iterations()) * launch_packets * frame_bytes)
        state.SkipWithError("packets are missing");
    bench::report_packets_of_turns(state, launch_packets);
}
BENCHMARK(receive_fiber_lanes)->ArgName("lanes")->Arg(32)->Arg(256)->UseManualTime();

/// A send ring with buffers; the benchmark acts as the NIC.
struct send_ring {
    send_ring()
    {
        txq.queue.ring = {.segments = words.data(),
                          .mask = depth - 1,
                          .queue = queue,
                          .checksums = 0,
                          .ready = 0,
                          .dbrec = &dbrec,
                          .doorbell = &doorbell,
                          .completion = &completion,
                          .filled = filled.data(),
                          .reserved = 0,
                          .asked = 0,
                          .completed = 0,
                          .commits = 0,
                          .refreshing = 0,
                          .needs_flush = 0};
        txq.queue.control = &control;
        complete(0);
        buffers = {.abi = WEFTIO_DEV_ABI_BUF_ARR,
                   .lkey_be = weftio_swap32(add_payload()),
                   .base = reinterpret_cast<std::uint8_t*>(payload.data()),
                   .stride_bytes = frame_bytes,
                   .count = depth,
                   .buffer_bytes = frame_bytes,
                   .reserved = {}};
    }
    send_ring(const send_ring&) = delete;

    /// Completes all entries before `index`, as the NIC does.
    void complete(std::uint32_t index)
    {
        weftio_store_release_sys_u32(&completion.publication,
                                     weftio_cqe_publication(index - 1, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    }

    static constexpr std::uint32_t queue = 1;
    std::vector<std::uint32_t> words = std::vector<std::uint32_t>(depth * 16);
    std::vector<std::uint32_t> filled = std::vector<std::uint32_t>(depth);
    std::vector<std::byte> payload = std::vector<std::byte>(depth * frame_bytes);
    alignas(64) std::uint32_t dbrec = 0;
    alignas(64) std::uint64_t doorbell = 0;
    alignas(64) weftio_cqe completion{};
    alignas(64) weftio_dev_control control{};
    alignas(64) weftio_dev_eth_txq txq{};
    weftio_dev_buf_arr buffers{};
    keys::key_table table;
    keys::nic_keys keys{"a bench's", table};

 private:
    std::uint32_t add_payload()
    {
        const std::uint32_t key = table.add(
            {.cpu = payload.data(), .base = reinterpret_cast<std::uint64_t>(payload.data()), .bytes = payload.size()});
        keys.grant(key, true);
        return key;
    }
};

void send_enqueue_strong(benchmark::State& state)
{
    const auto burst = static_cast<std::uint32_t>(state.range(0));
    send_ring ring;
    std::uint32_t index = 0;
    for (auto _ : state) {
        for (std::uint32_t at = 0; at < burst; ++at, ++index)
            weftio_dev_eth_txq_send_enqueue_strong(&ring.txq, weftio_dev_buf_get(&ring.buffers, index), frame_bytes,
                                                   WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_strong(&ring.txq);
        ring.complete(index);
    }
    if (ring.txq.queue.ring.ready != index)
        state.SkipWithError("entries are missing");
    bench::report_packets_of_turns(state, burst);
}
BENCHMARK(send_enqueue_strong)->ArgName("burst")->Arg(1)->Arg(32);

void send_enqueue_weak(benchmark::State& state)
{
    const auto burst = static_cast<std::uint32_t>(state.range(0));
    send_ring ring;
    std::uint32_t index = 0;
    for (auto _ : state) {
        for (std::uint32_t at = 0; at < burst; ++at, ++index)
            weftio_dev_eth_txq_send_enqueue_weak(&ring.txq, weftio_dev_buf_get(&ring.buffers, index), frame_bytes,
                                                 index & (depth - 1), WEFTIO_DEV_SEND_NONE);
        weftio_dev_eth_txq_commit_weak(&ring.txq, burst);
        ring.complete(index);
    }
    if (ring.txq.queue.ring.ready != index)
        state.SkipWithError("entries are missing");
    bench::report_packets_of_turns(state, burst);
}
BENCHMARK(send_enqueue_weak)->ArgName("burst")->Arg(1)->Arg(32);

/// The NIC's side: copies an entry, checks the copy, finds the frame.
void send_fetch_and_gather(benchmark::State& state)
{
    send_ring ring;
    for (std::uint32_t index = 0; index < depth; ++index)
        weftio_dev_eth_txq_send_enqueue_strong(&ring.txq, weftio_dev_buf_get(&ring.buffers, index), frame_bytes,
                                               WEFTIO_DEV_SEND_NONE);
    const nic::soft::entry_ring entries{.words = ring.words.data(), .depth = depth, .queue = send_ring::queue};
    nic::soft::entry entry;
    nic::soft::frame_pieces pieces;
    const keys::queue_keys keys(ring.keys, {});
    for (auto _ : state) {
        for (std::uint32_t index = 0; index < depth; ++index) {
            bool good = fetch(entries, index, depth, entry) == refusal::none &&
                        gather(entry, keys, 1500, pieces) == refusal::none && pieces.bytes == frame_bytes;
            if (!good) {
                state.SkipWithError("an entry was refused");
                return;
            }
        }
    }
    bench::report_packets_of_turns(state, depth);
}
BENCHMARK(send_fetch_and_gather);

} // namespace
