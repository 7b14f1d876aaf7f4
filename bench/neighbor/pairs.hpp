// What queue pairs cost a queue pair beside them.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"
#include "weftio/weftio.hpp"

namespace weftio::bench {

struct pair_options {
    bool inline_worker = false; ///< the kernel runs the engine
    int engine_core = -1;       ///< of the engine's thread
    int other_core = 1;         ///< of the thread that others have
    unsigned rounds = 7;
    double seconds = 0.5;
    std::string only;    ///< rows whose name contains this
    std::string missing; ///< what this machine lacks: no row is measured, and each says this; empty: nothing
};

/// Names of the rows, as --only selects them.
std::vector<std::string> pair_rows();

/// Trips a second of a queue pair that writes 8 bytes, waits and writes again: alone, and beside 1, 8 and 32 pairs of each
/// kind, all between two ends of a port of their own. Tells the longest gap between two of its completions, two shares that it
/// may claim, and how much of the larger one it keeps: one of n queue pairs; and what the bytes of the others leave, which
/// is 1 - their bytes beside it / their bytes alone.
void measure_pairs(const pair_options& wanted, const device& cpu, table& into);

} // namespace weftio::bench
