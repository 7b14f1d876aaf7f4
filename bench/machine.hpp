// Where a benchmark runs, and what it takes.
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

/// The calling thread and those that it starts from now on run on that core only. Throws weftio::error
/// errc::invalid_argument when there is none of that number.
inline void stay_on(int core)
{
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(static_cast<std::size_t>(core), &wanted);
    if (pthread_setaffinity_np(pthread_self(), sizeof wanted, &wanted) != 0)
        throw error(errc::invalid_argument, fmt::format("{}: there is no core {} to run on; name others with --cores",
                                                        program_invocation_short_name, core));
}

/// Memory that this process has, in bytes. Throws weftio::error errc::not_supported without /proc.
inline std::uint64_t resident_bytes()
{
    std::ifstream statm("/proc/self/statm");
    std::uint64_t size = 0, resident = 0;
    if (!(statm >> size >> resident))
        throw error(errc::not_supported,
                    fmt::format("{}: /proc/self/statm cannot be read, so memory cannot be watched; mount /proc",
                                program_invocation_short_name));
    return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

} // namespace weftio::bench
