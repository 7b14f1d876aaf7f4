// Which thread runs where, and what stands between a real-time thread and its core.
#pragma once

#include <optional>
#include <string>

namespace weftio::replay {

/// The last core that this thread may use; nothing when that is its only one.
std::optional<int> spare_core();

/// Leaves `core` to the engine. Threads started later inherit this; a process that may run nowhere else shares the
/// core.
void stay_off(int core);

/// What Linux takes from threads of real-time priority that never sleep, and how to change it; empty when that is
/// nothing. @param settings  the folder of sched_rt_runtime_us
std::string realtime_limit(const std::string& settings = "/proc/sys/kernel");

} // namespace weftio::replay
