// Patience with Linux.
#pragma once

#include <chrono>
#include <thread>

namespace weftio::nic {

/// Whether `condition` comes true within half a second. For what a program had that has just been ended: Linux takes
/// its memory apart first, for some 50 ms, and lets go of its interfaces and sockets then. Blocks so long.
template <class Condition>
bool soon(Condition&& condition)
{
    constexpr std::chrono::milliseconds patience{500}, pause{5};
    for (const auto begin = std::chrono::steady_clock::now(); !condition(); std::this_thread::sleep_for(pause))
        if (std::chrono::steady_clock::now() - begin > patience)
            return false;
    return true;
}

} // namespace weftio::nic
