// The clock that sends are scheduled by.
#pragma once

#include <cstdint>

namespace weftio {

/// UTC in nanoseconds, by the clock of the software NIC: what receive timestamps are in, and what eth_txq::timestamp()
/// takes. Continuous, steered towards CLOCK_REALTIME by at most 500 ppm, never stepped. Any thread; does not block, the
/// first call takes about 10 ms.
std::uint64_t utc_now_ns() noexcept;

} // namespace weftio
