// The library's own side of the log sink.
#pragma once

#include <string_view>

#include "weftio/log.hpp"

namespace weftio::detail {

/// Hands one line, without a newline, to the sink. Any thread; blocks only while another thread is in the sink.
void log(log_level level, std::string_view line);

/// From now on no line reaches the sink: the process exits, and what the sink uses may end before the library does.
void end_log() noexcept;

/// As log(), for places that must not throw, such as destructors: a line that cannot be made, or that the sink throws
/// at, is lost.
/// @param line  returns it
template <class Line>
void log_or_lose(log_level level, Line&& line) noexcept
try {
    log(level, line());
} catch (...) { // neither want of memory nor the sink's trouble may end the program
}

} // namespace weftio::detail
