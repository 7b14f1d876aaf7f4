#include "pacing/machine.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <vector>

namespace weftio::bench {

namespace {

const cpu_set_t& allowed_at_start()
{
    static const cpu_set_t allowed = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        sched_getaffinity(0, sizeof set, &set);
        return set;
    }();
    return allowed;
}

/// Folder of the engine's thread in /proc. The thread is named "weftio/" and the number of the port; names of kernel
/// threads have a letter there.
std::string find_engine_thread()
{
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
        std::string name;
        std::ifstream(task.path() / "comm") >> name;
        if (name.starts_with("weftio/") && name.size() > 7 && name[7] >= '0' && name[7] <= '9')
            return task.path().string();
    }
    return "";
}

/// Reads the ticks of a line of /proc/stat: user nice system idle iowait irq softirq steal.
void read_ticks(std::istringstream& line, std::uint64_t& all, std::uint64_t& steal)
{
    std::vector<std::uint64_t> ticks(8);
    for (std::uint64_t& each : ticks)
        line >> each;
    all = std::accumulate(ticks.begin(), ticks.end(), std::uint64_t{0});
    steal = ticks[7];
}

double percent(std::uint64_t part, std::uint64_t whole)
{
    return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

} // namespace

machine_watch::machine_watch(int engine_core)
    : engine_core_(engine_core), engine_thread_(find_engine_thread()), first_(now())
{}

machine_watch::sample machine_watch::now() const
{
    sample seen;
    std::ifstream stat("/proc/stat");
    for (std::string text; std::getline(stat, text);) {
        std::istringstream line(text);
        std::string name;
        line >> name;
        if (name == "cpu")
            read_ticks(line, seen.all, seen.all_steal);
        else if (name == fmt::format("cpu{}", engine_core_))
            read_ticks(line, seen.core, seen.core_steal);
    }
    std::ifstream(engine_thread_ + "/schedstat") >> seen.ran_ns >> seen.waited_ns;
    std::ifstream status(engine_thread_ + "/status");
    for (std::string name; status >> name;)
        if (name == "nonvoluntary_ctxt_switches:")
            status >> seen.preempted;
    return seen;
}

machine_use machine_watch::use() const
{
    sample last = now();
    machine_use use{.cores = static_cast<unsigned>(CPU_COUNT(&allowed_at_start())),
                    .engine_core = engine_core_,
                    .load = 0,
                    .steal_percent = percent(last.all_steal - first_.all_steal, last.all - first_.all),
                    .engine_core_steal_percent = percent(last.core_steal - first_.core_steal, last.core - first_.core),
                    .engine_ran_ns = last.ran_ns - first_.ran_ns,
                    .engine_waited_ns = last.waited_ns - first_.waited_ns,
                    .engine_preempted = last.preempted - first_.preempted};
    getloadavg(&use.load, 1);
    return use;
}

std::string machine_use::text() const
{
    std::string place =
        engine_core < 0 ? "the engine on any of them" : fmt::format("the engine on core {}", engine_core);
    std::string stolen =
        engine_core < 0 ? "" : fmt::format(", of core {} {:.2f} %", engine_core, engine_core_steal_percent);
    return fmt::format("{} cores, {}; load {:.2f}; steal {:.2f} % of all{}; the engine ran {:.3f} s, was preempted {} "
                       "times and waited {:.3f} ms{}",
                       cores, place, load, steal_percent, stolen, static_cast<double>(engine_ran_ns) / 1e9,
                       engine_preempted, static_cast<double>(engine_waited_ns) / 1e6,
                       engine_waited_ns > engine_ran_ns / 100 ? ": it had NO core of its own"
                                                              : ": the core was its own");
}

void stay_off_core(int core)
{
    cpu_set_t set = allowed_at_start();
    if (core >= 0)
        CPU_CLR(static_cast<std::size_t>(core), &set);
    if (CPU_COUNT(&set) != 0)
        sched_setaffinity(0, sizeof set, &set);
}

} // namespace weftio::bench
