// Samples memory and counters once per second of a soak.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weftio::bench {

/// Counters by name, always in the same order.
using counters = std::vector<std::pair<const char*, std::uint64_t>>;

/// Resident memory of this process over time, and whether its counters only grow.
class soak_watch {
 public:
    void sample(const counters& now);
    /// Names and values of counters that have decreased; empty if none has.
    const std::string& went_back() const noexcept { return went_back_; }
    std::size_t samples() const noexcept { return resident_.size(); }

    /// Mean of the last tenth of the samples minus the mean of the second tenth. During the first tenth the program
    /// still allocates.
    double growth_bytes() const;
    /// Slope by least squares over all samples but the first tenth.
    double bytes_per_sample() const;
    std::uint64_t last_resident_bytes() const { return resident_.empty() ? 0 : resident_.back(); }

 private:
    counters last_;
    std::string went_back_;
    std::vector<std::uint64_t> resident_;
};

} // namespace weftio::bench
