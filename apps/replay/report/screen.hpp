// What is shown while a run goes on.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "report/progress.hpp"

namespace weftio::replay {

/// Columns of the terminal on standard error; 80 when it does not say.
std::size_t terminal_columns() noexcept;

/// What is known of a run, as many of its parts as fit into `columns`. Rates are of the time since `before`.
std::string progress_text(const progress& at, const progress& before, std::size_t columns);

/// A line that is rewritten on a terminal's standard error, remarks on standard error about long waits, and lines on
/// standard output or standard error every so often. One thread.
class screen {
 public:
    struct options {
        bool terminal = false;       ///< show the line that is rewritten
        bool remarks = true;         ///< say when the next frame is long in coming
        double stats_s = 0;          ///< seconds between two lines on standard output; 0: none
        bool stats_on_error = false; ///< these go to standard error: a report has standard output
    };
    explicit screen(const options& wanted)
        : options_(wanted), stats_ns_(static_cast<std::uint64_t>(wanted.stats_s * 1e9))
    {}

    /// Shows `at` if it is time to.
    void show(const progress& at);
    /// Leaves the line for good.
    void end();
    /// Why a line could not be written to standard output: an error for the user, empty when all were.
    const std::string& failure() const noexcept { return failure_; }

 private:
    void remark(const progress& at);
    void print_stats(const progress& at);

    options options_;
    bool shown_ = false;
    std::uint64_t stats_ns_, remarked_ns_ = 0; ///< UTC of the frame that the last remark was about
    std::chrono::steady_clock::time_point shown_at_{};
    progress last_line_, last_stats_;
    std::string failure_;
};

} // namespace weftio::replay
