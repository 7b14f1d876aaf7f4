// A bounded retry.
#pragma once

#include <chrono>
#include <thread>

namespace weftio::dpdk {

/// Polls `condition` for up to half a second. Returns whether it became true. For resources of a program that has just
/// ended: Linux tears down its memory first, for some 50 ms, and releases its interfaces and sockets after that.
template <class Condition>
bool bounded_retry(Condition&& condition)
{
    constexpr std::chrono::milliseconds patience{500}, pause{5};
    for (const auto begin = std::chrono::steady_clock::now(); !condition(); std::this_thread::sleep_for(pause))
        if (std::chrono::steady_clock::now() - begin > patience)
            return false;
    return true;
}

} // namespace weftio::dpdk
