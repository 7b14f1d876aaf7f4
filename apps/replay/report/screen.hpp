// What is shown while a run goes on.
#pragma once

#include <cstdint>
#include <string>

#include "send/session.hpp"

namespace weftio::replay {

/// A line that is rewritten on a terminal's standard error, and lines on standard output every so often. One thread.
class screen {
 public:
    /// @param stats_s  seconds between two lines on standard output; 0: none
    screen(bool terminal, double stats_s) : terminal_(terminal), stats_ns_(static_cast<std::uint64_t>(stats_s * 1e9)) {}

    /// Shows `at` if it is time to.
    void show(const progress& at);
    /// Leaves the line for good.
    void end() const;

 private:
    std::string line(const progress& at, const progress& before) const;

    bool terminal_;
    bool shown_ = false;
    std::uint64_t stats_ns_;
    progress last_line_, last_stats_;
};

} // namespace weftio::replay
