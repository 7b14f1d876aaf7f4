// The same schedule sent by tcpreplay, for comparison.
#pragma once

#include <cstdint>
#include <string>

namespace weftio::bench {

/// Sends `count` frames, `interval_ns` apart, on an interface. Blocks until tcpreplay ends. Returns why it did not send
/// them, or an empty string. @throws std::runtime_error the capture file for it cannot be written
std::string run_tcpreplay(const std::string& interface, std::uint32_t count, std::uint64_t interval_ns);

} // namespace weftio::bench
