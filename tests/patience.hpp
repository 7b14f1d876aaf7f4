// Timeout of tests for events that must happen. Only a hang should reach it: raise WEFTIO_PATIENCE on a busy machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

namespace weftio::test {

/// A minute times the environment variable WEFTIO_PATIENCE. A wrong value ends the program.
inline std::chrono::nanoseconds patience_of_environment()
{
    const char* text = std::getenv("WEFTIO_PATIENCE");
    if (!text || *text == 0)
        text = "1";
    char* end = nullptr;
    const double factor = std::strtod(text, &end);
    if (*end != 0 || !(factor > 0 && factor <= 1000)) {
        std::fprintf(stderr,
                     "WEFTIO_PATIENCE is \"%s\", which is no number above 0 and up to 1000: set it to how many "
                     "minutes tests wait\n",
                     text);
        std::_Exit(2);
    }
    return std::chrono::nanoseconds(static_cast<std::int64_t>(factor * 60e9));
}

/// The timeout of every wait for an event that must happen.
inline const std::chrono::nanoseconds patience = patience_of_environment();
/// The same timeout in nanoseconds, for device functions.
inline const std::uint64_t patience_ns = static_cast<std::uint64_t>(patience.count());

/// Whether `condition` becomes true within `patience`.
inline bool eventually(const std::function<bool()>& condition)
{
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline)
            return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

} // namespace weftio::test
