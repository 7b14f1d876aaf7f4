// How the benchmarks of packets say what they found.
#pragma once

#include <cstdint>

#include <benchmark/benchmark.h>

namespace weftio::bench {

/// `count` packets were moved in the time that the benchmark measured: how many a second (M/s are Mpps), and what each took.
inline void report_packets(benchmark::State& state, std::uint64_t count)
{
    using benchmark::Counter;
    auto packets = static_cast<double>(count);
    state.counters["packets"] = Counter(packets, Counter::kIsRate);
    state.counters["each"] = Counter(packets, Counter::kIsRate | Counter::kInvert);
}

} // namespace weftio::bench
