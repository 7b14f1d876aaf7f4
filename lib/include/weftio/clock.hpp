// The clock of scheduled sends.
#pragma once

#include <cstdint>

namespace weftio {

/// UTC in nanoseconds by the clock of the software NIC, which receive timestamps and eth_txq::timestamp() use.
/// Continuous; steered towards CLOCK_REALTIME by at most 500 ppm, never stepped. Any thread; never blocks, but the
/// first call takes about 10 ms.
std::uint64_t utc_now_ns() noexcept;

} // namespace weftio
