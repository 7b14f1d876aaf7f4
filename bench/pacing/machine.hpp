// What the machine allowed while something was measured.
#pragma once

#include <cstdint>
#include <string>

namespace weftio::bench {

/// Between two looks.
struct machine_use {
    unsigned cores = 0;       ///< that this process may use
    int engine_core = -1;     ///< -1: wherever the system puts it
    double load = 0;          ///< of the last minute
    double steal_percent = 0; ///< time the hypervisor took, of all cores
    double engine_core_steal_percent = 0;
    std::uint64_t engine_ran_ns = 0;
    std::uint64_t engine_waited_ns = 0; ///< it could have run, and another thread had its core
    std::uint64_t engine_preempted = 0; ///< times it was made to leave
    std::string text() const;           ///< for people
};

/// Looks when it is made, and again. The engine's thread must be there both times.
class machine_watch {
 public:
    explicit machine_watch(int engine_core);
    machine_use use() const;

 private:
    struct look {
        std::uint64_t all = 0, all_steal = 0, core = 0, core_steal = 0; ///< in ticks
        std::uint64_t ran_ns = 0, waited_ns = 0, preempted = 0;
    };
    look now() const;

    int engine_core_;
    std::string engine_thread_; ///< its folder in /proc, empty when there is none
    look first_;
};

/// Keeps this thread, and those it will start, off a core, or lets them run anywhere again (-1).
/// @param core  ignored when there is no other
void stay_off_core(int core);

} // namespace weftio::bench
