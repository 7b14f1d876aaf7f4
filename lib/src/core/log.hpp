// The library's own side of the log sink.
#pragma once

#include <string_view>

#include "weftio/log.hpp"

namespace weftio::detail {

/// Hands one line, without a newline, to the sink. Any thread; blocks only while another thread is in the sink.
void log(log_level level, std::string_view line);

} // namespace weftio::detail
