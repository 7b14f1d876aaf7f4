#include "send/cores.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <fstream>

namespace weftio::replay {

namespace {

cpu_set_t allowed_cores()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
}

} // namespace

std::optional<int> spare_core()
{
    cpu_set_t set = allowed_cores();
    int core = CPU_SETSIZE - 1;
    while (core > 0 && !CPU_ISSET(static_cast<std::size_t>(core), &set))
        --core;
    return CPU_COUNT(&set) > 1 ? std::optional(core) : std::nullopt;
}

void stay_off(int core)
{
    cpu_set_t set = allowed_cores();
    CPU_CLR(static_cast<std::size_t>(core), &set);
    if (CPU_COUNT(&set) != 0)
        ::sched_setaffinity(0, sizeof set, &set);
}

std::string realtime_limit(const std::string& settings)
{
    long runtime_us = -1, period_us = 0;
    std::ifstream(settings + "/sched_rt_runtime_us") >> runtime_us;
    std::ifstream(settings + "/sched_rt_period_us") >> period_us;
    if (runtime_us < 0 || runtime_us >= period_us)
        return {};
    return fmt::format("weftio-replay: Linux takes the core from a real-time thread for {} ms in every {} ms, so "
                       "frames due then are late; run \"sysctl kernel.sched_rt_runtime_us=-1\" before, and \"sysctl "
                       "kernel.sched_rt_runtime_us={}\" after this run",
                       (period_us - runtime_us) / 1000, period_us / 1000, runtime_us);
}

} // namespace weftio::replay
