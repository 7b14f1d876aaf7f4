// Cost of parts of a RoCEv2 packet: its CRC-32, compared with that of DPDK, alone and in one pass with the copy.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <rte_cpuflags.h>
#include <rte_net_crc.h>

#include "net/icrc.hpp"

extern "C" int rte_vect_set_max_simd_bitwidth(std::uint16_t bits); // DPDK's header declares it without C linkage

namespace {

using namespace weftio::net;
using bytes = std::vector<std::uint8_t>;

constexpr std::int64_t lengths[] = {64, 256, 1024, 4096};
constexpr std::size_t cold_bytes = 256u << 20; // much larger than the caches

bytes random_bytes(std::size_t count)
{
    std::mt19937 random(1);
    bytes data(count);
    std::generate(data.begin(), data.end(), [&] { return static_cast<std::uint8_t>(random()); });
    return data;
}

void count_bytes(benchmark::State& state)
{
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

void sum_by(benchmark::State& state, const crc32_method& method)
{
    const auto length = static_cast<std::size_t>(state.range(0));
    const bytes data = random_bytes(length);
    for (auto _ : state) {
        benchmark::DoNotOptimize(method.update(crc32_start, data.data(), length));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void sum_by_dpdk(benchmark::State& state, rte_net_crc_alg algorithm)
{
    const auto length = static_cast<std::uint32_t>(state.range(0));
    const bytes data = random_bytes(length);
    rte_net_crc_set_alg(algorithm);
    if (rte_net_crc_calc(data.data(), length, RTE_NET_CRC32_ETH) != ~crc32_update(crc32_start, data))
        state.SkipWithError("the sums differ");
    for (auto _ : state) {
        benchmark::DoNotOptimize(rte_net_crc_calc(data.data(), length, RTE_NET_CRC32_ETH));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void copy_by(benchmark::State& state, const crc32_method& method)
{
    const auto length = static_cast<std::size_t>(state.range(0));
    const bytes data = random_bytes(length);
    bytes to(length);
    for (auto _ : state) {
        benchmark::DoNotOptimize(method.copy(crc32_start, to.data(), data.data(), length));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void copy_then_sum_by(benchmark::State& state, const crc32_method& method)
{
    const auto length = static_cast<std::size_t>(state.range(0));
    const bytes data = random_bytes(length);
    bytes to(length);
    for (auto _ : state) {
        std::memcpy(to.data(), data.data(), length);
        benchmark::DoNotOptimize(method.update(crc32_start, to.data(), length));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

/// Memory that is in no cache: each copy uses its own part of the memory.
struct cold_memory {
    bytes from = random_bytes(cold_bytes), to = bytes(cold_bytes);
    std::size_t at = 0;

    static cold_memory& only()
    {
        static cold_memory memory;
        return memory;
    }
    std::size_t next(std::size_t length)
    {
        at = at + length + 4096 > cold_bytes ? 0 : at + length;
        return at;
    }
};

void copy_cold(benchmark::State& state)
{
    const auto length = static_cast<std::size_t>(state.range(0));
    cold_memory& memory = cold_memory::only();
    for (auto _ : state) {
        const std::size_t at = memory.next(length);
        benchmark::DoNotOptimize(copy_and_sum(crc32_start, &memory.to[at], std::span(memory.from).subspan(at, length)));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

void copy_then_sum_cold(benchmark::State& state)
{
    const auto length = static_cast<std::size_t>(state.range(0));
    cold_memory& memory = cold_memory::only();
    for (auto _ : state) {
        const std::size_t at = memory.next(length);
        std::memcpy(&memory.to[at], &memory.from[at], length);
        benchmark::DoNotOptimize(crc32_update(crc32_start, std::span(memory.to).subspan(at, length)));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}

/// The complete ICRC of a SEND over IPv4; the last argument is its payload in bytes.
void icrc_of_packet(benchmark::State& state)
{
    bytes packet = random_bytes(masked_ipv4_bytes + static_cast<std::size_t>(state.range(0)));
    packet[0] = 0x45;
    for (auto _ : state) {
        benchmark::DoNotOptimize(icrc_of(packet));
        benchmark::ClobberMemory();
    }
    count_bytes(state);
}
BENCHMARK(icrc_of_packet)->Arg(64)->Arg(256)->Arg(1024)->Arg(4096);

template <class... Arguments>
void add(const std::string& name, Arguments... arguments)
{
    auto* row = benchmark::RegisterBenchmark(name.c_str(), arguments...);
    for (std::int64_t length : lengths)
        row->Arg(length);
}

/// Registers the rows for the methods that this processor supports.
const bool rows_added = [] {
    for (const crc32_method& method : crc32_methods()) {
        add(std::string("crc32/") + method.name, sum_by, method);
        add(std::string("copy_and_sum/") + method.name, copy_by, method);
        add(std::string("memcpy_then_crc32/") + method.name, copy_then_sum_by, method);
    }
    add("copy_and_sum/cold", copy_cold);
    add("memcpy_then_crc32/cold", copy_then_sum_cold);
#if defined(RTE_ARCH_X86)
    rte_vect_set_max_simd_bitwidth(512); // without EAL, DPDK allows no SIMD
    add("rte_net_crc/sse42", sum_by_dpdk, RTE_NET_CRC_SSE42);
    if (rte_cpu_get_flag_enabled(RTE_CPUFLAG_VPCLMULQDQ) > 0 && rte_cpu_get_flag_enabled(RTE_CPUFLAG_AVX512VL) > 0)
        add("rte_net_crc/avx512", sum_by_dpdk, RTE_NET_CRC_AVX512);
#endif
    return true;
}();

} // namespace
