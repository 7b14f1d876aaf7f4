// Counters: the engine brings them up to date before the program reads one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "node.hpp"

namespace weftio::test {

namespace {

/// How often the engine was asked to.
ssize_t counts()
{
    const int node = open_node(0);
    const ssize_t count = ask(node, "counts");
    ::close(node);
    return count;
}

constexpr const char* counter = "/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data";

TEST(Counters, AreBroughtUpToDateWhenOneIsOpened)
{
    const ssize_t before = counts();
    EXPECT_EQ(-1, ::open("/sys/class/infiniband/mlx5_0/ports/1/state", O_WRONLY | O_CREAT | O_EXCL, 0600));
    EXPECT_EQ(before, counts());
    EXPECT_EQ(-1, ::open(counter, O_RDONLY));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_EQ(before + 1, counts());
    EXPECT_EQ(nullptr, std::fopen(counter, "r"));
    EXPECT_EQ(before + 2, counts());
}

TEST(Counters, AreBroughtUpToDateWhenAFileIsReadAgain)
{
    char byte;
    ::open(counter, O_RDONLY);
    const int there = ::open("/sys/class/infiniband/mlx5_0/node_guid", O_RDONLY | O_CLOEXEC),
              elsewhere = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    const ssize_t before = counts();
    errno = 77;
    EXPECT_EQ(0, ::lseek(there, 0, SEEK_SET));
    EXPECT_EQ(77, errno);
    EXPECT_EQ(before + 1, counts());
    EXPECT_EQ(0, ::lseek64(there, 0, SEEK_SET));
    EXPECT_EQ(1, ::pread(there, &byte, 1, 0));
    EXPECT_EQ(1, ::pread64(there, &byte, 1, 0));
    EXPECT_EQ(before + 4, counts());
    EXPECT_EQ(0, ::lseek(elsewhere, 0, SEEK_SET));
    EXPECT_EQ(1, ::pread(elsewhere, &byte, 1, 0));
    EXPECT_EQ(-1, ::lseek(-1, 0, SEEK_SET));
    EXPECT_EQ(EBADF, errno);
    EXPECT_EQ(before + 4, counts());
    ::close(there);
    ::close(elsewhere);
}

} // namespace
} // namespace weftio::test
