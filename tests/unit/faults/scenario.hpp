// A program's whole life with the library, and what it must leave behind: nothing.
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
    int lives = 2;              ///< of the queues: they are reset in between
    bool kernel_leaves = false; ///< unasked, so that the watchdog has to report
};

/// Opens, sends and receives, resets, sends and receives again, closes. Throws what the library throws; a test failure
/// when packets or reports stay away although nothing was thrown.
void live(const scenario& scenario);

} // namespace weftio::test
