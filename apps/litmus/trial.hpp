// One cell of the table: data, then a flag, many times, and how often who has seen the flag does not see the data.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "verbs.hpp"

namespace weftio::litmus {

enum class writer { write, write_then_atomic, write_with_immediate };
enum class flag_place { same_region, other_region, completion };
enum class flush { none, read_same_pair, read_other_pair };

const char* to_string(writer) noexcept;
const char* to_string(flag_place) noexcept;
const char* to_string(flush) noexcept;

struct cell {
    writer by = writer::write;
    flag_place flag = flag_place::same_region;
    flush how = flush::none;
    bool relaxed = false; ///< relaxed ordering of PCIe

    /// "write, same region, no flush, strict"
    std::string words() const;
};

/// All that can be.
std::vector<cell> all_cells();

struct trial_options {
    std::uint64_t trials = 1'000'000;
    std::uint64_t until = 0;    ///< ends after so many stale reads; 0: after all trials
    std::uint32_t pairs = 1024; ///< of data and flag, in flight at once
    std::uint32_t bytes = 256;  ///< of data; a multiple of 8
};

struct outcome {
    cell of{};
    std::uint64_t trials = 0;
    std::uint64_t stale = 0;
    double seconds = 0;
    std::string refused{}; ///< not empty: it was not run, and why

    /// Of the rate of stale reads, with 98 % confidence: with it so few stale reads, or fewer, come once in 50 runs
    /// (a Poisson distribution).
    double upper_bound() const;
};

/// Runs one cell, with queue pairs of its own. Blocks. The caller's thread reads, another one writes. Throws failure.
/// @param stopped  asked at times; true ends the cell early
outcome run(const cell& wanted, const trial_options& options, const port_options& at,
            const std::function<bool()>& stopped);

} // namespace weftio::litmus
