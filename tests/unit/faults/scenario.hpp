// A program's whole life with the library, and what it must leave behind: nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

namespace weftio::test {

/// What could leak.
struct holdings {
    std::ptrdiff_t descriptors = 0, threads = 0;
    int pools = 0, zones = 0, dpdk_ports = 0;
    std::int64_t blocks = 0; ///< of memory; 0 where drivers allocate too

    /// @param with_blocks  no driver allocates through operator new
    static holdings now(bool with_blocks);
    bool operator==(const holdings&) const = default;
};
void PrintTo(const holdings& held, std::ostream* out);

struct scenario {
    std::string port = "null";
    std::string device = "cpu";
    std::uint32_t lanes = 1;
    bool inline_mode = false;
    int lives = 2;              ///< of the queues: they are reset in between
    bool kernel_leaves = false; ///< unasked, so that the watchdog has to report
};

/// Opens, sends and receives, resets, sends and receives again, closes. Throws what the library throws; a test failure
/// when packets or reports stay away although nothing was thrown.
void live(const scenario& scenario);

} // namespace weftio::test
