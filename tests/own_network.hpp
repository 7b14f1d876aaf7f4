// Tests of interfaces, which leave those of the machine alone.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <thread>

namespace weftio::test {

/// Runs `body` in a thread with a network of its own, in which lo is up and v0 and v1 are a veth pair. Everything in it
/// ends with the thread. Skips the test where that cannot be had, which only root can.
/// @param missed  what is not tested then
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
            } catch (const std::exception& thrown) { // in a thread it would end the program
                ADD_FAILURE() << thrown.what();
            }
    }).join();
    if (!missing.empty())
        GTEST_SKIP() << "missed: " << missed << "; " << missing;
}

} // namespace weftio::test
