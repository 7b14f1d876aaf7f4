// Records how late each sent frame was, also over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "histogram.hpp"

namespace weftio::replay {

/// Planned and actual times of frames.
struct timing {
    apps::histogram errors; ///< actual minus planned
    std::uint64_t late = 0, early = 0;
    std::uint64_t first_planned_ns = 0, first_sent_ns = 0, last_planned_ns = 0, last_sent_ns = 0; ///< UTC

    void observe(std::uint64_t planned_ns, std::uint64_t sent_ns, std::uint64_t late_after_ns);
    /// Schedule error of the last frame. All planned times count from the anchor of the run.
    std::int64_t drift_ns() const noexcept;
};

/// Schedule error over time in a bounded number of columns: when they are full, pairs of columns are merged.
class error_series {
 public:
    struct column {
        std::uint64_t count = 0, sum_ns = 0, min_ns = 0, max_ns = 0;
    };
    static constexpr std::size_t most_columns = 1024;

    void observe(std::uint64_t offset_ns, std::uint64_t error_ns);
    const std::vector<column>& columns() const noexcept { return columns_; }
    std::uint64_t column_ns() const noexcept { return column_ns_; }

 private:
    void halve();

    std::vector<column> columns_;
    std::uint64_t column_ns_ = 1'000'000;
};

/// Collects the times of every file's frames. One thread.
class observer {
 public:
    observer(std::size_t files, std::uint64_t late_after_ns) : files_(files), late_after_ns_(late_after_ns) {}

    void observe(std::size_t file, std::uint64_t planned_ns, std::uint64_t sent_ns);

    const timing& total() const noexcept { return total_; }
    const timing& file(std::size_t number) const noexcept { return files_[number]; }
    const error_series& series() const noexcept { return series_; }

 private:
    timing total_;
    std::vector<timing> files_;
    error_series series_;
    std::uint64_t late_after_ns_;
};

} // namespace weftio::replay
