// Runs loads on a file: by Weftio, and by POSIX calls and copies.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/plan.hpp"
#include "histogram.hpp"
#include "weftio/file_result.hpp"

namespace weftio::files {

/// What one load did.
struct bench_run {
    std::string how{};            ///< "weftio", "posix + copy", "fio"
    std::uint64_t file_bytes = 0; ///< the part of the file that is used
    std::uint64_t size = 0, operations = 0, bytes = 0, errors = 0, wrong = 0;
    double seconds = 0;
    apps::histogram latency{};
    std::string complaint{};  ///< the first error or wrong byte; empty: none
    file_counters counters{}; ///< of weftio: how the operations went
    /// What was moved over time: the bytes of each of so many equal parts of its seconds. fio tells one for each round.
    std::vector<std::uint64_t> progress{};
};

/// Runs each size each way. Blocks for the time of all runs.
///
/// @param step  is called in front of each round with its name
/// @throws weftio::error  the file cannot be made or opened, or the device has no memory
std::vector<bench_run> run_bench(const bench_options& options, const std::function<void(const std::string&)>& step);

/// One line for each run.
std::string to_table(const std::vector<bench_run>& runs);
std::string to_json(const bench_options& options, const std::vector<bench_run>& runs);
/// A diagram for each size: what each way moved over time.
std::string to_svg(const bench_options& options, const std::vector<bench_run>& runs);
/// Whether all operations succeeded with the right bytes; those of fio are its own.
bool is_clean(const std::vector<bench_run>& runs) noexcept;

} // namespace weftio::files
