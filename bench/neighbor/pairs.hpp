// Effect of other queue pairs of a port on one queue pair.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"
#include "weftio/weftio.hpp"

namespace weftio::bench {

struct pair_options {
    bool inline_worker = false; ///< the kernel runs the engine
    int engine_core = -1;       ///< core of the engine's thread
    int other_core = 1;         ///< core of the thread of the other queue pairs
    unsigned rounds = 7;
    double seconds = 0.5;
    std::string gpu;     ///< device whose memory is payload of staged messages; empty: their rows are left out
    std::string only;    ///< rows whose name contains this
    std::string missing; ///< not empty: no row is measured, and each has this reason, such as "needs 3 cores"
};

/// Names of the rows, as --only selects them.
std::vector<std::string> pair_rows();

/// Measures round trips per second of the good pair, which writes 8 bytes, waits and writes again: alone, and beside 1,
/// 8 and 32 other pairs of each kind. All pairs connect two ends of one port. Rows are also the longest gap between two
/// of its completions, two fair shares, and the part of the larger share that the good pair keeps. The shares: 1/n for
/// n queue pairs (share by count), and 1 - work of the others beside it / work of the others alone (share by work).
void measure_pairs(const pair_options& wanted, const device& cpu, table& into);

} // namespace weftio::bench
