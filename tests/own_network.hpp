// Runs tests of interfaces in a network namespace, so that they do not touch the interfaces of the machine.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>

namespace weftio::test {

/// Runs `body` in a thread with a network namespace of its own, in which lo is up and v0 and v1 are a veth pair. The
/// namespace ends with the thread. Skips the test if this is not possible; it needs root.
/// @param missed  what is not tested if the test is skipped
inline void in_own_network(const char* missed, const std::function<void()>& body)
{
    std::string missing;
    std::thread([&] {
        if (unshare(CLONE_NEWNET) != 0)
            missing = "needs root to make a network namespace";
        else if (std::system("ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip "
                             "link set v1 up") != 0)
            missing = "\"ip link add v0 type veth\" failed";
        else
            try {
                body();
            } catch (const std::exception& thrown) { // an uncaught exception in a thread would end the program
                ADD_FAILURE() << thrown.what();
            }
    }).join();
    if (!missing.empty())
        GTEST_SKIP() << "missed: " << missed << "; " << missing;
}

} // namespace weftio::test
