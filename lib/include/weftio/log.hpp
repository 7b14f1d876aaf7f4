// The library's log. It prints nothing unless the program calls `log_to_stderr` or WEFTIO_LOG is set.
#pragma once

#include <functional>
#include <string_view>

namespace weftio {

enum class log_level { debug, info, warning, error };

using log_sink = std::function<void(log_level, std::string_view)>;

/// Sends every later log line, those of DPDK, libbpf and libxdp included, to `sink`; an empty sink drops them. Any
/// thread. The sink is called from any thread, one call at a time, and must not call back into the library; lines that
/// it logs itself are dropped. An exception that it throws is dropped with the line. It is not called once the process
/// has begun to exit.
///
/// Before the first call, lines are dropped, unless the environment variable WEFTIO_LOG names a level ("debug", "info",
/// "warning" or "error"): lines of that level and above then go to standard error.
void set_log_sink(log_sink sink);

/// Writes every later log line of level `least` and above to standard error, instead of to any sink. Any thread.
void log_to_stderr(log_level least);

/// Returns the level of that name. Throws weftio::error errc::invalid_argument for any other name.
log_level log_level_named(std::string_view name);

} // namespace weftio
