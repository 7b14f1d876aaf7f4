// The state of a run in progress.
#pragma once

#include <cstdint>

namespace weftio::replay {

/// Why the next frame is not due yet.
enum class wait_for {
    start, ///< it is the first of the plan
    gap,   ///< of the capture
    rate,  ///< of --pps or --mbps
};

/// The progress of a run.
struct progress {
    std::uint64_t elapsed_ns = 0; ///< since the anchor
    std::uint64_t sent = 0, sent_bytes = 0, late = 0;
    std::uint64_t planned_ns = 0, actual_ns = 0; ///< times of the latest frame, from the anchor
    std::uint64_t next_ns = 0,
                  next_in_ns = 0; ///< UTC of the next frame where it is not due yet, and until then; else 0
    wait_for waits_for = wait_for::gap;
    double share = 0; ///< fraction of the plan that is done, 0 to 1; 0 while unknown
    bool timed = true;
};

} // namespace weftio::replay
