// Statistics of deviations from a schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weftio::bench {

/// One row of the result. Quantiles and maximum are of the absolute deviation from the schedule; unknown values are
/// left out.
struct row {
    std::string name;
    std::uint64_t frames = 0;
    std::uint64_t early = 0; ///< frames before their scheduled time
    bool knows_early = true;
    std::uint64_t p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
    std::int64_t end_drift_ns = 0; ///< how late the last frame was
    bool knows_drift = true;
    std::string peer{}; ///< the row that it is compared with
};

/// @param late_ns  lateness of each frame that arrived, in order; negative if the frame was early
row summarize(std::string name, std::vector<std::int64_t> late_ns);

} // namespace weftio::bench
