// A complete use of the library by a program, after which no resource may be left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>

namespace weftio::test {

struct scenario {
    std::string port = "null";
    std::string device = "cpu";
    std::uint32_t lanes = 1;
    bool inline_mode = false;
    int lives = 2;              ///< number of runs with the same queues, which are reset between runs
    bool kernel_leaves = false; ///< the kernel returns by itself, so that the watchdog must report it
};

/// Opens, sends and receives, resets, sends and receives again, closes. Throws the exceptions of the library. The test
/// fails if packets or reports are missing although no exception was thrown.
void live(const scenario& scenario);

} // namespace weftio::test
