// Every function that takes a descriptor.
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "node.hpp"
#include "ordinary_file.hpp"

namespace weftio::test {

namespace {

int open_null()
{
    return ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

TEST(Writing, ReachesTheEngine)
{
    const int node = open_node(1);
    EXPECT_EQ(answer_of_1, ask(node));
    EXPECT_EQ(-1, ask(node, "fail"));
    EXPECT_EQ(EINVAL, errno);
    errno = ENXIO;
    EXPECT_EQ(answer_of_1, ask(node));
    EXPECT_EQ(ENXIO, errno) << "what succeeds leaves errno alone";
    ::close(node);
}

TEST(Writing, OfPartsIsACommandEach)
{
    const int node = open_node(1);
    char command[] = "x", failing[] = "fail";
    const iovec parts[] = {{command, 1}, {command, 1}, {failing, 4}, {command, 1}};
    EXPECT_EQ(2 * answer_of_1, ::writev(node, parts, 4));
    EXPECT_EQ(-1, ::writev(node, parts + 2, 2));
    EXPECT_EQ(EINVAL, errno);
    ::close(node);
    const int null = open_null();
    EXPECT_EQ(2, ::writev(null, parts, 2));
    ::close(null);
}

TEST(Writing, ToOthersPasses)
{
    int ends[2];
    ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    EXPECT_EQ(4, ::write(ends[0], "data", 4));
    char data[4];
    EXPECT_EQ(4, ::read(ends[1], data, 4));
    ::close(ends[0]);
    ::close(ends[1]);
    EXPECT_EQ(-1, ::write(ends[0], "data", 4));
    EXPECT_EQ(EBADF, errno);
    EXPECT_EQ(-1, ::write(-1, "data", 4));
    EXPECT_EQ(EBADF, errno);
}

TEST(Ioctl, OfANodeIsTheEngines)
{
    const int node = open_node(1);
    int bytes = 0;
    EXPECT_EQ(-1, ::ioctl(node, FIONREAD, &bytes)); // its socket would know
    EXPECT_EQ(ENOTTY, errno);
    EXPECT_EQ(2001, ::ioctl(node, RDMA_VERBS_IOCTL, nullptr));
    ::close(node);
    int ends[2];
    ASSERT_EQ(0, ::pipe2(ends, O_CLOEXEC));
    EXPECT_EQ(3, ::write(ends[1], "abc", 3));
    EXPECT_EQ(0, ::ioctl(ends[0], FIONREAD, &bytes));
    EXPECT_EQ(3, bytes);
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(Mapping, OfANodeIsTheEngines)
{
    const int node = open_node(0);
    for (const auto map : {::mmap, ::mmap64}) {
        void* const page = map(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, node, 4096);
        ASSERT_NE(MAP_FAILED, page);
        EXPECT_STREQ("toy", static_cast<const char*>(page));
        EXPECT_EQ(0, ::munmap(page, 4096));
        EXPECT_EQ(MAP_FAILED, map(nullptr, 4096, PROT_READ, MAP_SHARED, node, 8192));
        EXPECT_EQ(EINVAL, errno);
        // An anonymous mapping has no descriptor.
        void* const plain = map(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, node, 0);
        ASSERT_NE(MAP_FAILED, plain);
        EXPECT_EQ(0, *static_cast<const char*>(plain));
        ::munmap(plain, 4096);
    }
    ::close(node);
    const ordinary_file file;
    const int plain = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    void* const page = ::mmap(nullptr, 5, PROT_READ, MAP_PRIVATE, plain, 0);
    ASSERT_NE(MAP_FAILED, page);
    EXPECT_EQ(0, std::memcmp(page, "plain", 5));
    ::munmap(page, 5);
    ::close(plain);
}

TEST(Sockets, OfRdmaAreRefusedAndReported)
{
    const int node = open_node(0);
    const ssize_t before = ask(node, "refused netlink");
    EXPECT_EQ(-1, ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA));
    EXPECT_EQ(EPROTONOSUPPORT, errno);
    EXPECT_EQ(-1, ::socket(AF_NETLINK, SOCK_DGRAM, NETLINK_RDMA));
    EXPECT_EQ(before + 2, ask(node, "refused netlink"));
    ::close(node);
    const int others = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    EXPECT_GE(others, 0);
    ::close(others);
    const int local = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_GE(local, 0);
    ::close(local);
}

struct duplicator {
    const char* name;
    int (*call)(int descriptor);
};
/// A descriptor number that is not open.
int unused()
{
    const int number = open_null();
    ::close(number);
    return number;
}
const duplicator duplicators[] = {
    {"dup", ::dup},
    {"dup2", [](int from) { return ::dup2(from, unused()); }},
    {"dup2Over", [](int from) { return ::dup2(from, open_null()); }},
    {"dup3", [](int from) { return ::dup3(from, unused(), O_CLOEXEC); }},
    {"dupfd", [](int from) { return ::fcntl(from, F_DUPFD, 0); }},
    {"dupfdFar", [](int from) { return ::fcntl(from, F_DUPFD, 900); }},
    {"dupfdCloexec", [](int from) { return ::fcntl(from, F_DUPFD_CLOEXEC, 0); }},
    {"fcntl64", [](int from) { return ::fcntl64(from, F_DUPFD, 0); }},
};

class Duplicate : public testing::TestWithParam<duplicator> {};
INSTANTIATE_TEST_SUITE_P(Functions, Duplicate, testing::ValuesIn(duplicators),
                         [](const auto& it) { return it.param.name; });

TEST_P(Duplicate, OutlivesTheOriginal)
{
    const int node = open_node(1);
    const int twin = GetParam().call(node);
    ASSERT_GE(twin, 0);
    EXPECT_EQ(answer_of_1, ask(twin));
    ::close(node);
    EXPECT_EQ(answer_of_1, ask(twin));
    ::close(twin);
    EXPECT_EQ(-1, ask(twin));
    EXPECT_EQ(EBADF, errno);
}

TEST_P(Duplicate, IsOutlivedByTheOriginal)
{
    const int node = open_node(1);
    ::close(GetParam().call(node));
    EXPECT_EQ(answer_of_1, ask(node));
    ::close(node);
}

TEST_P(Duplicate, OfAnOrdinaryFileIsOne)
{
    const int null = open_null();
    const int twin = GetParam().call(null);
    EXPECT_EQ(1, ask(twin));
    ::close(null);
    ::close(twin);
}

TEST(Duplicating, HasTheErrnoOfTheRealFunction)
{
    const int node = open_node(0), closed = unused();
    EXPECT_EQ(-1, ::dup(closed));
    EXPECT_EQ(EBADF, errno);
    EXPECT_EQ(-1, ::dup2(closed, node));
    EXPECT_EQ(EBADF, errno);
    EXPECT_EQ(answer_of_0, ask(node)) << "nothing was closed";
    EXPECT_EQ(-1, ::dup3(node, node, 0));
    EXPECT_EQ(EINVAL, errno);
    EXPECT_EQ(-1, ::dup2(node, -1));
    EXPECT_EQ(EBADF, errno);
    EXPECT_EQ(-1, ::fcntl(node, F_DUPFD, -1));
    EXPECT_EQ(EINVAL, errno);
    ::close(node);
}

TEST(Fcntl, PassesAllElse)
{
    const int node = open_node(0);
    EXPECT_EQ(0, ::fcntl(node, F_SETFD, 0));
    EXPECT_EQ(0, ::fcntl(node, F_GETFD));
    EXPECT_EQ(0, ::fcntl(node, F_SETFL, O_NONBLOCK));
    EXPECT_TRUE(::fcntl(node, F_GETFL) & O_NONBLOCK);
    const ordinary_file file;
    const int plain = ::open(file.path().c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
    EXPECT_EQ(0, ::fcntl(plain, F_SETLK, &lock));
    ::close(plain);
    ::close(node);
}

TEST(ANumber, IsForgottenWithItsNode)
{
    const int node = open_node(1);
    ::close(node);
    const int null = open_null();
    ASSERT_EQ(node, null);
    EXPECT_EQ(1, ask(null));
    ::close(null);
}

TEST(ANumber, MayBeClosedBehindOurBack)
{
    std::FILE* const stream = std::fopen("/dev/infiniband/uverbs1", "r+");
    ASSERT_NE(nullptr, stream);
    const int node = fileno(stream);
    EXPECT_EQ(answer_of_1, ask(node));
    std::fclose(stream); // calls no close() that a library can intercept
    const int null = open_null();
    ASSERT_EQ(node, null);
    EXPECT_EQ(1, ask(null));
    struct stat file;
    EXPECT_EQ(0, ::fstat(null, &file));
    EXPECT_NE(makedev(231, 193), file.st_rdev);
    ::close(null);
    int ends[2]; // a socket at the number, as nodes are
    ASSERT_EQ(0, ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    ASSERT_EQ(node, ends[0]);
    EXPECT_EQ(1, ask(ends[0]));
    EXPECT_EQ(0, ::fstat(ends[0], &file));
    EXPECT_TRUE(S_ISSOCK(file.st_mode));
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST(ANumber, IsTheOtherFilesAfterDup2)
{
    const int node = open_node(1), null = open_null();
    EXPECT_EQ(node, ::dup2(null, node));
    EXPECT_EQ(1, ask(node));
    const int another = open_node(0);
    EXPECT_EQ(node, ::dup3(another, node, O_CLOEXEC));
    EXPECT_EQ(answer_of_0, ask(node));
    EXPECT_EQ(node, ::dup2(node, node));
    EXPECT_EQ(answer_of_0, ask(node));
    for (const int descriptor : {node, null, another})
        ::close(descriptor);
}

TEST(Closing, IsToldToTheEngine)
{
    const int node = open_node(0), twin = ::dup(node), third = ::dup(node), null = open_null();
    const ssize_t before = reported_closes() + 1;
    ::close(node);
    EXPECT_EQ(before + 1, reported_closes());
    EXPECT_EQ(twin, ::dup2(null, twin));
    EXPECT_EQ(before + 3, reported_closes()) << "with the one that reported_closes() has closed";
    ::close(twin);
    EXPECT_EQ(before + 4, reported_closes()) << "an ordinary file tells nothing";
    EXPECT_EQ(0, ::close_range(static_cast<unsigned>(third), static_cast<unsigned>(third), 0));
    EXPECT_EQ(before + 6, reported_closes());
    ::close(null);
}

TEST(Closing, ARangeForgetsItsNodes)
{
    const int first = ::fcntl(open_node(0), F_DUPFD_CLOEXEC, 2000), last = ::fcntl(first, F_DUPFD_CLOEXEC, 3000);
    const auto from = static_cast<unsigned>(first), to = static_cast<unsigned>(last);
    EXPECT_EQ(-1, ::close_range(to, from, 0));
    EXPECT_EQ(-1, ::close_range(from, to, 1 << 20));
    EXPECT_EQ(answer_of_0, ask(first)) << "a refused call forgets nothing";
    EXPECT_EQ(0, ::close_range(from, to, CLOSE_RANGE_CLOEXEC));
    EXPECT_EQ(answer_of_0, ask(first));
    EXPECT_EQ(0, ::close_range(from, to, 0));
    EXPECT_EQ(-1, ask(first));
    EXPECT_EQ(EBADF, errno);
    const int again = ::fcntl(open_node(1), F_DUPFD_CLOEXEC, first);
    EXPECT_EQ(first, again);
    ::closefrom(first);
    EXPECT_EQ(-1, ask(first));
    EXPECT_EQ(first, ::fcntl(STDERR_FILENO, F_DUPFD, first));
    EXPECT_EQ(0, ::write(first, "", 0));
    ::close(first);
}

} // namespace
} // namespace weftio::test
