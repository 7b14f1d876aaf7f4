// Shows the progress of a run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "report/progress.hpp"

namespace weftio::replay {

/// Columns of the terminal on standard error; 80 if unknown.
std::size_t terminal_columns() noexcept;

/// The progress line: as many parts as fit into `columns`. Rates cover the time since `before`.
std::string progress_text(const progress& at, const progress& before, std::size_t columns);

/// Shows a line that is rewritten on a terminal (standard error), remarks on long waits on standard error, and periodic
/// lines on standard output or standard error. One thread.
class screen {
 public:
    struct options {
        bool terminal = false;       ///< show the rewritten line
        bool remarks = true;         ///< remark on long waits for the next frame
        double stats_s = 0;          ///< seconds between two periodic lines; 0: none
        bool stats_on_error = false; ///< periodic lines go to standard error, because standard output has a report
    };
    explicit screen(const options& wanted)
        : options_(wanted), stats_ns_(static_cast<std::uint64_t>(wanted.stats_s * 1e9))
    {}

    /// Shows `at` if an update is due.
    void show(const progress& at);
    /// Ends the rewritten line.
    void end();
    /// Why a line could not be written to standard output, as an error for the user; empty if all were.
    const std::string& failure() const noexcept { return failure_; }

 private:
    void remark(const progress& at);
    void print_stats(const progress& at);

    options options_;
    bool shown_ = false;
    std::uint64_t stats_ns_, remarked_ns_ = 0; ///< remarked_ns_: UTC of the frame of the last remark
    std::chrono::steady_clock::time_point shown_at_{};
    progress last_line_, last_stats_;
    std::string failure_;
};

} // namespace weftio::replay
