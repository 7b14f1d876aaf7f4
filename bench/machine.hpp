// The core that a benchmark runs on, and the memory that it uses.
#pragma once

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <fstream>

#include "weftio/error.hpp"

namespace weftio::bench {

/// Pins the calling thread, and the threads that it starts later, to a core. Throws weftio::error
/// errc::invalid_argument if there is no such core.
inline void stay_on(int core)
{
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(static_cast<std::size_t>(core), &wanted);
    if (pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted) != 0)
        throw error(errc::invalid_argument, fmt::format("{}: no core {} to run on; name other cores with --cores",
                                                        program_invocation_short_name, core));
}

/// Resident memory of this process, in bytes. Throws weftio::error errc::not_supported without /proc.
inline std::uint64_t resident_bytes()
{
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0, resident = 0;
    if (!(statm >> size >> resident))
        throw error(errc::not_supported,
                    fmt::format("{}: cannot read /proc/self/statm, which shows the memory in use; mount /proc",
                                program_invocation_short_name));
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

} // namespace weftio::bench
