// An open device node whose engine answers writes with 1000 + the number of its device.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

namespace weftio::test {

inline constexpr ssize_t answer_of_0 = 1000, answer_of_1 = 1001;

inline int open_node(unsigned device)
{
    return ::open(device == 0 ? "/dev/infiniband/uverbs0" : "/dev/infiniband/uverbs1", O_RDWR | O_CLOEXEC);
}

inline ssize_t ask(int descriptor, std::string_view command = "x")
{
    return ::write(descriptor, command.data(), command.size());
}

/// Number of notifications to the engine that a node has been closed.
inline ssize_t reported_closes()
{
    const int node = open_node(0);
    const ssize_t count = ask(node, "closes");
    ::close(node); // this close is counted in the next call
    return count;
}

} // namespace weftio::test
