// What is looked at every second of a soak.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weftio::bench {

/// Counters by name, always in the same order.
using counters = std::vector<std::pair<const char*, std::uint64_t>>;

/// Bytes of memory that this process has, and whether its counters only grow.
class soak_watch {
 public:
    void look(const counters& now);
    /// Names of counters that have gone back, with the values; empty when none has.
    const std::string& went_back() const noexcept { return went_back_; }
    std::size_t looks() const noexcept { return resident_.size(); }

    /// Mean of the last tenth of the looks over the mean of the second tenth: in the first, things are still made.
    double growth_bytes() const;
    /// Least squares over all but the first tenth.
    double bytes_per_look() const;
    std::uint64_t last_resident_bytes() const { return resident_.empty() ? 0 : resident_.back(); }

 private:
    counters last_;
    std::string went_back_;
    std::vector<std::uint64_t> resident_;
};

} // namespace weftio::bench
