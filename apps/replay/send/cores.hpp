// Places threads on cores, and finds what limits a real-time thread.
#pragma once

#include <optional>
#include <string>

namespace weftio::replay {

/// The last core that this thread may use; nothing if it is the only one.
std::optional<int> spare_core();

/// Keeps this thread, and threads that it starts later, off `core`, which the engine uses. If the process may use no
/// other core, it shares it.
void stay_off(int core);

/// The time that Linux takes from real-time threads that never sleep, and how to change it; empty if none. @param
/// settings  the folder of sched_rt_runtime_us
std::string realtime_limit(const std::string& settings = "/proc/sys/kernel");

} // namespace weftio::replay
