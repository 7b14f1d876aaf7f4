// How the library writes to the log sink.
#pragma once

#include <string_view>

#include "weftio/log.hpp"

namespace weftio::core {

/// Hands one line, without a newline, to the sink. Any thread; blocks only while another thread is in the sink.
void log(log_level level, std::string_view line);

/// Disables the sink. Called when the process begins to exit, since what the sink uses may be destroyed before the
/// library.
void end_log() noexcept;

/// Like log(), for places that must not throw, such as destructors: a line that cannot be built, or at which the sink
/// throws, is lost.
/// @param line  returns the line
template <class Line>
void log_or_lose(log_level level, Line&& line) noexcept
try {
    log(level, line());
} catch (...) { // no memory, or an exception of the sink: the program goes on
}

} // namespace weftio::core
