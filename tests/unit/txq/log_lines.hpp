// The lines that the library writes to its log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weftio/log.hpp"

namespace weftio::test {

/// Collects the lines of the log during its lifetime.
class log_lines {
 public:
    log_lines()
    {
        set_log_sink([this](log_level, std::string_view line) {
            if (line.starts_with("weftio: ")) // without DPDK's own lines
                lines.emplace_back(line);
        });
    }
    ~log_lines() { set_log_sink({}); }
    std::vector<std::string> lines;
};

} // namespace weftio::test
