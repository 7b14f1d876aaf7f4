// Where the library's log lines go. The library itself never prints.
#pragma once

#include <functional>
#include <string_view>

namespace weftio {

enum class log_level { debug, info, warning, error };

using log_sink = std::function<void(log_level, std::string_view)>;

/// Hands every later log line, those of DPDK, libbpf and libxdp included, to `sink`; an empty one (the default) drops them. Any
/// thread; the sink is called from any thread, one call at a time, and must not call back into the library.
void set_log_sink(log_sink sink);

} // namespace weftio
