// Calls that fail on purpose: allocations, DPDK, OpenCL, a device, the system.
#pragma once

#include <cstdint>

#include "sanitized.hpp"

namespace weftio::test {

enum class calls {
    allocation, ///< operator new, in every thread of the program that is not a driver's own
    dpdk,       ///< the calls that calls.def lists under this name; the same for the kinds below
    removal,    ///< removal of the port's DPDK device
    device,
    opencl,
    system,
};

enum class how {
    once,     ///< the n-th call
    for_good, ///< the n-th call and all later ones
};

/// Makes calls of a kind fail during its lifetime. Only one object may exist at a time.
class injected_fault {
 public:
    /// @param number  number of the first call that fails, from 1
    injected_fault(calls kind, how how, std::uint64_t number);
    injected_fault(const injected_fault&) = delete;
    injected_fault& operator=(const injected_fault&) = delete;
    ~injected_fault();

    /// Whether the failing call has been reached.
    bool reached() const;
    /// The call that failed first, for messages.
    const char* name() const;
};

/// Number of blocks that operator new has allocated and operator delete has not freed; 0 under sanitizers.
std::int64_t blocks_alive();

} // namespace weftio::test
