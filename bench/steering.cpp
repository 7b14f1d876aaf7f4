// Cost of a packet in software steering, without receiving and delivering it: parsing, checksums, hash, and a rule
// table whose last rule matches.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <benchmark/benchmark.h>

#include "../tests/unit/steering/frames.hpp"
#include "net/checksum.hpp"
#include "nic/soft/receive/steering.hpp"

namespace {

using namespace weftio::net;
using namespace weftio::nic;
using namespace weftio::nic::soft;
using frames::bytes;

constexpr std::size_t traffic_frames = 1024; // with different source ports, so that branches are not predicted

std::vector<bytes> udp4_traffic()
{
    std::vector<bytes> traffic;
    for (std::size_t i = 0; i < traffic_frames; ++i)
        traffic.push_back(frames::udp4(static_cast<std::uint16_t>(i), 2000));
    return traffic;
}
std::vector<bytes> udp6_traffic()
{
    std::vector<bytes> traffic;
    for (std::size_t i = 0; i < traffic_frames; ++i)
        traffic.push_back(frames::udp6(static_cast<std::uint16_t>(i), 2000));
    return traffic;
}

void parse_frames(benchmark::State& state, const std::vector<bytes>& traffic)
{
    std::size_t next = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(parse(traffic[next++ % traffic_frames], {}));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(parse_frames, udp4, udp4_traffic());
BENCHMARK_CAPTURE(parse_frames, udp6, udp6_traffic());

void hash_frames(benchmark::State& state, const std::vector<bytes>& traffic)
{
    std::vector<packet_headers> headers;
    for (const bytes& frame : traffic)
        headers.push_back(parse(frame, {}));
    std::size_t next = 0;
    for (auto _ : state)
        benchmark::DoNotOptimize(rss_hash(headers[next++ % traffic_frames], weftio::rss_key::standard));
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(hash_frames, udp4, udp4_traffic());
BENCHMARK_CAPTURE(hash_frames, udp6, udp6_traffic());

void verify_frame(benchmark::State& state)
{
    const auto payload_bytes = static_cast<std::size_t>(state.range(0));
    const bytes frame = frames::ethernet({}, 0x0800, frames::ipv4({}, frames::udp(1, 2, payload_bytes)));
    const packet_headers headers = parse(frame, {});
    for (auto _ : state)
        benchmark::DoNotOptimize(verify_checksums(frame, headers));
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(frame.size()));
}
BENCHMARK(verify_frame)->Arg(18)->Arg(470)->Arg(1472)->Arg(8972);

/// `state.range(0)` rules for destination ports; the last one matches.
void decide_among_rules(benchmark::State& state)
{
    const std::vector<bytes> traffic = udp4_traffic();
    steering table;
    const auto rules = static_cast<std::uint16_t>(state.range(0));
    for (std::uint16_t i = 0; i < rules; ++i) {
        auto rule = std::make_shared<steering_rule>();
        const auto port = static_cast<std::uint16_t>(i + 1 == rules ? 2000 : 3000 + i);
        rule->match = {.ip_protocol = 17, .destination_port = {{port, port}}};
        rule->action = weftio::flow_kind::queue;
        rule->targets = {0};
        rule->sequence = i;
        table.add(rule);
    }
    packet_headers headers;
    std::size_t next = 0;
    for (auto _ : state) {
        const bytes& frame = traffic[next++ % traffic_frames];
        benchmark::DoNotOptimize(
            table.decide({.start = frame, .bytes = static_cast<std::uint32_t>(frame.size())}, &headers));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decide_among_rules)->Arg(1)->Arg(8)->Arg(64);

/// One rule without fields: with one queue the fast path, with several queues RSS.
void decide_for_everything(benchmark::State& state)
{
    const std::vector<bytes> traffic = udp4_traffic();
    const auto queues = static_cast<std::uint32_t>(state.range(0));
    auto rule = std::make_shared<steering_rule>();
    rule->action = queues == 1 ? weftio::flow_kind::queue : weftio::flow_kind::rss;
    for (std::uint32_t queue = 0; queue < queues; ++queue)
        rule->targets.push_back(queue);
    steering table;
    table.add(rule);
    std::size_t next = 0;
    for (auto _ : state) {
        const bytes& frame = traffic[next++ % traffic_frames];
        benchmark::DoNotOptimize(
            table.decide({.start = frame, .bytes = static_cast<std::uint32_t>(frame.size())}, nullptr));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(decide_for_everything)->Arg(1)->Arg(4);

} // namespace
