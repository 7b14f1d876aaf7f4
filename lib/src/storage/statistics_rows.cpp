// What DPDK's telemetry shows of a file engine.
#include <fmt/format.h>

#include <string>

#include "storage/statistics.hpp"

namespace weftio::storage {

namespace {

constexpr const char* kinds[] = {"read", "write", "sync"};
constexpr unsigned most_entries = 250; ///< of a dictionary: DPDK takes 256

const char* name_of(std::size_t way)
{
    return to_string(static_cast<file_way>(way));
}

/// Level 1: operations, errors, bytes and latencies of each way that was taken, and falls.
void fill_ways(const live_statistics& from, rte_tel_data* dict)
{
    core::put(dict, "level", from.level);
    for (std::size_t i = 0; i < live_statistics::ways_count; ++i)
        for (std::size_t what = 0; what < 3; ++what) {
            const live_statistics::per_way& way = from.ways[i];
            const std::uint64_t operations = way.operations[what].load(std::memory_order_relaxed);
            if (operations == 0)
                continue;
            const auto entry = [&](const char* name, std::uint64_t value) {
                core::put(dict, fmt::format("{}_{}_{}", name_of(i), kinds[what], name).c_str(), value);
            };
            entry("operations", operations);
            entry("errors", way.errors[what].load(std::memory_order_relaxed));
            if (what < 2)
                entry("bytes", way.bytes[what].load(std::memory_order_relaxed));
            if (from.level >= 1) {
                entry("latency_mean_ns", way.latency_ns[what].load(std::memory_order_relaxed) / operations);
                entry("latency_max_ns", way.latency_max_ns[what].load(std::memory_order_relaxed));
            }
        }
    core::put(dict, "files", from.registered.files.load(std::memory_order_relaxed));
    core::put(dict, "buffers", from.registered.buffers.load(std::memory_order_relaxed));
    core::put(dict, "buffer_bytes", from.registered.buffer_bytes.load(std::memory_order_relaxed));
    core::put(dict, "registered_files", from.rings.files.load(std::memory_order_relaxed));
    core::put(dict, "registered_buffers", from.rings.buffers.load(std::memory_order_relaxed));
    core::put(dict, "refused_registrations", from.rings.refused.load(std::memory_order_relaxed));
    for (std::size_t fall = 1; fall < live_statistics::falls_count; ++fall)
        core::put(dict, fmt::format("fell_{}", to_string(static_cast<file_fall>(fall))).c_str(),
                  from.falls[fall].load(std::memory_order_relaxed));
}

/// Level 2: operations of each size.
void fill_sizes(const live_statistics& from, rte_tel_data* dict)
{
    unsigned entries = 0;
    for (std::size_t i = 0; i < live_statistics::ways_count; ++i)
        for (std::size_t what = 0; what < 2; ++what)
            for (std::size_t size = 0; size < live_statistics::sizes_count; ++size)
                if (const std::uint64_t count = from.sizes[i][what][size].load(std::memory_order_relaxed);
                    count && entries < most_entries) {
                    core::put(dict, fmt::format("{}_{}_{}", name_of(i), kinds[what], least_of_size(size)).c_str(),
                              count);
                    ++entries;
                }
}

/// Level 3: each GPU and way.
void fill_gpus(const live_statistics& from, rte_tel_data* dict)
{
    for (std::size_t gpu = 0; gpu < live_statistics::gpus_count; ++gpu)
        for (std::size_t i = 0; i < live_statistics::ways_count; ++i) {
            const live_statistics::per_gpu& it = from.gpus[gpu][i];
            if (it.operations.load(std::memory_order_relaxed) == 0)
                continue;
            const std::string name = fmt::format("gpu{}_{}", gpu, name_of(i));
            core::put(dict, (name + "_operations").c_str(), it.operations.load(std::memory_order_relaxed));
            core::put(dict, (name + "_errors").c_str(), it.errors.load(std::memory_order_relaxed));
            core::put(dict, (name + "_bytes").c_str(), it.bytes.load(std::memory_order_relaxed));
        }
}

} // namespace

void tally::add_rows()
{
    using core::telemetry_kind;
    const auto add = [this](telemetry_kind kind, void (*fill)(const live_statistics&, rte_tel_data*)) {
        rows_.push_back(std::make_unique<core::telemetry_row>(
            kind, [from = page_, fill](rte_tel_data* dict) { fill(*from, dict); }));
    };
    add(telemetry_kind::file, fill_ways);
    if (level_ >= 2)
        add(telemetry_kind::file_sizes, fill_sizes);
    if (level_ >= 3)
        add(telemetry_kind::file_gpus, fill_gpus);
}

} // namespace weftio::storage
