// Resources of a process that could leak without being detected by a sanitizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <ostream>
#include <string>

#include <fmt/format.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_memzone.h>

namespace weftio::test {

struct holdings {
    std::ptrdiff_t descriptors = 0, threads = 0;
    int pools = 0, zones = 0, dpdk_ports = 0;
    std::int64_t blocks = 0; ///< blocks of memory, counted by the caller

    static holdings now(std::int64_t blocks = 0);
    bool operator==(const holdings&) const = default;
};

/// Whether the process holds no more of any resource than before.
inline bool no_more(const holdings& now, const holdings& before)
{
    return now.descriptors <= before.descriptors && now.threads <= before.threads && now.pools <= before.pools &&
           now.zones <= before.zones && now.dpdk_ports <= before.dpdk_ports && now.blocks <= before.blocks;
}

/// Whether a thread is exiting. It may stay in /proc for a moment after pthread_join() has returned, but PF_EXITING
/// (0x4, linux/sched.h) is set by then.
inline bool ending(const std::filesystem::path& task)
{
    std::ifstream stat(task / "stat"); // pid (name) state ppid pgrp session tty_nr tpgid flags: proc(5)
    stat.ignore(std::numeric_limits<std::streamsize>::max(), ')');
    std::string other;
    for (int field = 3; field < 9; ++field)
        stat >> other;
    unsigned flags = 0;
    return !(stat >> flags) || (flags & 0x4) != 0;
}

inline holdings holdings::now(std::int64_t blocks)
{
    holdings found{.blocks = blocks};
    const std::filesystem::directory_iterator descriptors("/proc/self/fd");
    found.descriptors = std::distance(begin(descriptors), end(descriptors));
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
        found.threads += !ending(task.path());
    rte_mempool_walk([](rte_mempool*, void* count) { ++*static_cast<int*>(count); }, &found.pools);
    rte_memzone_walk([](const rte_memzone*, void* count) { ++*static_cast<int*>(count); }, &found.zones);
    found.dpdk_ports = rte_eth_dev_count_avail();
    return found;
}

inline void PrintTo(const holdings& held, std::ostream* out)
{
    *out << fmt::format("{} descriptors, {} threads, {} pools, {} zones, {} DPDK ports, {} blocks of memory",
                        held.descriptors, held.threads, held.pools, held.zones, held.dpdk_ports, held.blocks);
}

} // namespace weftio::test
