// Deviations from a plan, summed up.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weftio::bench {

/// One row of the result. Quantiles and maximum are of the distance from the plan, whichever side; what is not known is
/// left out.
struct row {
    std::string name;
    std::uint64_t frames = 0;
    std::uint64_t early = 0; ///< before their time
    bool knows_early = true;
    std::uint64_t p50_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
    std::int64_t end_drift_ns = 0; ///< how late the last frame was
    bool knows_drift = true;
    std::string peer{}; ///< the row that it is compared with
};

/// @param late_ns  of each frame in order, negative when it was early; all are of frames that came
row summarize(std::string name, std::vector<std::int64_t> late_ns);

} // namespace weftio::bench
