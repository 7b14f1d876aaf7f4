// Reports the cost per packet of a benchmark.
#pragma once

#include <cstdint>

#include <benchmark/benchmark.h>

namespace weftio::bench {

/// Reports that `count` packets were moved in the measured time. The figure of the row is the time per packet.
inline void report_packets(benchmark::State& state, std::uint64_t count)
{
    using benchmark::Counter;
    auto packets = static_cast<double>(count);
    state.counters["each"] = Counter(packets, Counter::kIsRate | Counter::kInvert);
}

/// Reports that `each_time` packets were moved in every iteration of the benchmark's loop.
inline void report_packets_of_turns(benchmark::State& state, std::uint64_t each_time)
{
    report_packets(state, static_cast<std::uint64_t>(state.iterations()) * each_time);
}

} // namespace weftio::bench
