// Distributions of durations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weftio::apps {

/// Distribution of nanoseconds with 32 steps per octave, so that a quantile is within 3 %. One thread at a time.
class histogram {
 public:
    void record(std::uint64_t value_ns, std::uint64_t count = 1);
    std::uint64_t count() const noexcept { return count_; }
    std::uint64_t max_ns() const noexcept { return max_; }
    /// The value that a fraction `share` (0 to 1) of the records does not exceed; 0 without records.
    std::uint64_t quantile_ns(double share) const noexcept;
    /// The value of the record at `rank` in ascending order. The first has rank 1, and rank 0 means the same; 0 without
    /// records.
    std::uint64_t value_at_rank_ns(std::uint64_t rank) const noexcept;
    void add(const histogram& other);

 private:
    std::vector<std::uint64_t> records_; ///< empty until the first record
    std::uint64_t count_ = 0, max_ = 0;
};

} // namespace weftio::apps
