// Calls that fail on purpose: allocations, DPDK, OpenCL, a device, the system.
#pragma once

#include <cstdint>

#include "sanitized.hpp"

namespace weftio::test {

enum class calls {
    allocation, ///< operator new, of every thread of the program that is not a driver's own
    dpdk,       ///< as in calls.def, like those below
    removal,    ///< of the port's DPDK device
    device,
    opencl,
    system,
};

enum class how {
    once,     ///< the n-th call
    for_good, ///< the n-th and all behind it
};

/// From construction to destruction calls of a kind fail. One at a time.
class injected_fault {
 public:
    /// @param number  of the first call that fails, from 1
    injected_fault(calls kind, how how, std::uint64_t number);
    injected_fault(const injected_fault&) = delete;
    injected_fault& operator=(const injected_fault&) = delete;
    ~injected_fault();

    /// Whether as many calls have been made.
    bool reached() const;
    /// The call that failed first, for messages.
    const char* name() const;
};

/// Blocks that operator new gave and operator delete has not taken back; 0 under sanitizers.
std::int64_t blocks_alive();

} // namespace weftio::test
