// How long tests wait for what must come. Only a hang should reach it: on a busy machine raise WEFTIO_PATIENCE.
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

/// The bound of every wait for what must come.
inline const std::chrono::nanoseconds patience = patience_of_environment();
/// The same, as device functions take it.
inline const std::uint64_t patience_ns = static_cast<std::uint64_t>(patience.count());

/// Whether `condition` comes true within `patience`.
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
