// Where the library's log lines go. The library prints none unless it is told to: by `log_to_stderr` or by WEFTIO_LOG.
#pragma once

#include <functional>
#include <string_view>

namespace weftio {

enum class log_level { debug, info, warning, error };

using log_sink = std::function<void(log_level, std::string_view)>;

/// Hands every later log line, those of DPDK, libbpf and libxdp included, to `sink`; an empty one drops them. Any
/// thread; the sink is called from any thread, one call at a time, and must not call back into the library. What it
/// logs itself is dropped. Once the process has begun to exit it is called no more.
///
/// Before the first call lines are dropped, unless the environment variable WEFTIO_LOG names a level ("debug", "info",
/// "warning" or "error"): then lines of that level and above go to standard error.
void set_log_sink(log_sink sink);

/// Writes every later log line of level `least` and above to standard error, in place of any sink. Any thread.
void log_to_stderr(log_level least);

/// The level of that name. Throws weftio::error errc::invalid_argument for any other name.
log_level log_level_named(std::string_view name);

} // namespace weftio
