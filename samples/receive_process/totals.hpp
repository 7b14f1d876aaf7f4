// The totals of receive_process, and their table.
#pragma once

#include "receive_process.kernel.h"

#include <fmt/format.h>

#include "weftio/weftio.hpp"

inline constexpr const char* names[PROTOCOLS]{"eth",    "ip",  "ipv6", "arp",  "icmp",
                                              "icmpv6", "tcp", "udp",  "vlan", "other"};

struct totals {
    std::uint64_t frames[PROTOCOLS]{}, bytes[PROTOCOLS]{};
};

/// Adds the counts that the kernels have reported since the last call.
inline void collect(weftio::semaphore& to_cpu, totals& sum)
{
    to_cpu.for_each_ready([&](auto, auto, auto, void* info) {
        auto& batch = *static_cast<statistics*>(info);
        for (std::size_t protocol = 0; protocol < PROTOCOLS; ++protocol) {
            sum.frames[protocol] += batch.frames[protocol];
            sum.bytes[protocol] += batch.bytes[protocol];
        }
        batch = {};
    });
}

inline void print(const totals& sum)
{
    fmt::print("{:8} {:>12} {:>16}\n", "protocol", "frames", "bytes");
    for (std::size_t protocol = 0; protocol < PROTOCOLS; ++protocol)
        fmt::print("{:8} {:12} {:16}\n", names[protocol], sum.frames[protocol], sum.bytes[protocol]);
}
