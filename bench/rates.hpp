// How the benchmarks of packets say what they found.
#pragma once

#include <cstdint>

#include <benchmark/benchmark.h>

namespace weftio::bench {

/// `count` packets were moved in the time that the benchmark measured: what each took is the figure of the row.
inline void report_packets(benchmark::State& state, std::uint64_t count)
{
    using benchmark::Counter;
    auto packets = static_cast<double>(count);
    state.counters["each"] = Counter(packets, Counter::kIsRate | Counter::kInvert);
}

/// `each_time` packets were moved in every turn of the benchmark's loop.
inline void report_packets_of_turns(benchmark::State& state, std::uint64_t each_time)
{
    report_packets(state, static_cast<std::uint64_t>(state.iterations()) * each_time);
}

} // namespace weftio::bench
