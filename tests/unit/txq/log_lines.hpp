// What the library says to its log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weftio/log.hpp"

namespace weftio::test {

/// Lines of the log while it lives.
class log_lines {
 public:
    log_lines()
    {
        set_log_sink([this](log_level, std::string_view line) {
            if (line.starts_with("weftio: ")) // not DPDK's own
                lines.emplace_back(line);
        });
    }
    ~log_lines() { set_log_sink({}); }
    std::vector<std::string> lines;
};

} // namespace weftio::test
