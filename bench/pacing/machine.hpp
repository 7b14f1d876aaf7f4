// Use of the machine during a measurement: load, steal time, and the time that the engine waited for its core.
#pragma once

#include <cstdint>
#include <string>

namespace weftio::bench {

/// Differences between two samples.
struct machine_use {
    unsigned cores = 0;       ///< number of cores that this process may use
    int engine_core = -1;     ///< -1: the system decides
    double load = 0;          ///< load average of the last minute
    double steal_percent = 0; ///< steal time of all cores
    double engine_core_steal_percent = 0;
    std::uint64_t engine_ran_ns = 0;
    std::uint64_t engine_waited_ns = 0; ///< runnable, while another thread had its core
    std::uint64_t engine_preempted = 0; ///< number of preemptions
    std::string text() const;           ///< for people
};

/// Takes a sample in the constructor and another in use(). The engine's thread must exist both times.
class machine_watch {
 public:
    explicit machine_watch(int engine_core);
    machine_use use() const;

 private:
    struct sample {
        std::uint64_t all = 0, all_steal = 0, core = 0, core_steal = 0; ///< in ticks
        std::uint64_t ran_ns = 0, waited_ns = 0, preempted = 0;
    };
    sample now() const;

    int engine_core_;
    std::string engine_thread_; ///< folder of the thread in /proc; empty: no such thread
    sample first_;
};

/// Keeps the calling thread, and the threads that it starts later, off a core.
/// @param core  -1: allows all cores again; ignored if there is only one core
void stay_off_core(int core);

} // namespace weftio::bench
