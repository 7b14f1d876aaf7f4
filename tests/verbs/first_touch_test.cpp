// Programs that have not accessed a device before: each test is a process of its own.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "node.hpp"

namespace weftio::test {

namespace {

constexpr const char* variable = "WEFTIO_TEST_FIRST_TOUCH";

/// Whether this process is the one for the test. The others start it, and expect that it does not fail.
bool is_in_own_process()
{
    if (std::getenv(variable) != nullptr)
        return true;
    const std::string name =
        std::string("--gtest_filter=FirstTouch.") + testing::UnitTest::GetInstance()->current_test_info()->name();
    const pid_t child = ::fork();
    if (child == 0) {
        ::setenv(variable, "1", 1);
        for (const char* others : {"GTEST_OUTPUT", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
            ::unsetenv(others);
        ::execl("/proc/self/exe", "preload_test", name.c_str(), nullptr);
        ::_exit(127);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(0, status);
    return false;
}

bool has_engine()
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.find("toy_engine") != line.npos)
            return true;
    return false;
}

TEST(FirstTouch, StartsTheEngineAndNothingBeforeDoes)
{
    if (!is_in_own_process())
        return;
    char path[4096];
    ::close(::open("/dev/null", O_RDWR));
    EXPECT_EQ(0, ::access("/sys/class/net", F_OK));
    EXPECT_EQ(-1, ::access("/sys/class/infiniband2", F_OK));
    ::access("/sys/class/infiniband/../net", F_OK);
    ::access("/sys/bus/pci/devices", F_OK);
    EXPECT_NE(nullptr, ::realpath("/dev", path));
    EXPECT_FALSE(has_engine());
    errno = ENXIO;
    EXPECT_EQ(0, ::access("/dev/infiniband/uverbs0", F_OK));
    EXPECT_EQ(ENXIO, errno) << "what succeeds leaves errno alone";
    EXPECT_TRUE(has_engine());
}

TEST(FirstTouch, OfManyThreadsStartsOneEngine)
{
    if (!is_in_own_process())
        return;
    std::atomic<bool> go{false};
    std::atomic<unsigned> right{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
            while (!go)
                std::this_thread::yield();
            const int node = open_node(1);
            right += ask(node) == answer_of_1;
            ::close(node);
        });
    go = true;
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(8u, right);
}

TEST(FirstTouch, OfAChildStartsTheChildsEngine)
{
    if (!is_in_own_process())
        return;
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(ask(open_node(1)) == answer_of_1 ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(0, status);
    EXPECT_FALSE(has_engine());
    EXPECT_EQ(answer_of_0, ask(open_node(0)));
}

TEST(FirstTouch, OfAChildThatSharesMemoryStartsNone)
{
    if (!is_in_own_process())
        return;
    volatile int seen = 2;
    const pid_t child = ::vfork();
    if (child == 0) {
        seen = ::access("/dev/infiniband/uverbs0", F_OK);
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(has_engine());
    EXPECT_NE(2, seen);
    EXPECT_EQ(answer_of_0, ask(open_node(0)));
}

TEST(FirstTouch, ByAStream)
{
    if (!is_in_own_process())
        return;
    std::string guid;
    std::ifstream("/sys/class/infiniband/mlx5_0/node_guid") >> guid;
    EXPECT_EQ("0200:00ff:fe00:0001", guid);
}

TEST(FirstTouch, WorksAfterTheEnvironmentWasCleared)
{
    if (!is_in_own_process())
        return;
    ::clearenv();
    EXPECT_EQ(answer_of_1, ask(open_node(1)));
}

TEST(FirstTouch, OfALibraryThatIsBeingLoadedFindsNone)
{
    if (!is_in_own_process())
        return;
    testing::internal::CaptureStderr();
    void* const library = ::dlopen(WEFTIO_LOOKS_WHEN_LOADED, RTLD_NOW | RTLD_LOCAL);
    EXPECT_EQ(
        "weftio-run: a library looks for devices while it is being loaded: the engine cannot start during that; the "
        "program sees no devices\n",
        testing::internal::GetCapturedStderr());
    ASSERT_NE(nullptr, library) << ::dlerror();
    EXPECT_FALSE(has_engine());
    EXPECT_EQ(answer_of_1, ask(open_node(1))) << "and later it starts";
}

TEST(FirstTouch, OfALibraryThatTheProgramIsLinkedToFindsThem)
{
    const std::string command = std::string("WEFTIO_TEST_SAYS=1 LD_PRELOAD=") + std::getenv("LD_PRELOAD") +
                                ":" WEFTIO_LOOKS_WHEN_LOADED " cat /dev/null | grep -q 'seen: 0'";
    EXPECT_EQ(0, std::system(command.c_str()));
}

TEST(FirstTouch, OfAThreadWaitsForOthersThatLoadLibraries)
{
    if (!is_in_own_process())
        return;
    std::atomic<bool> stop{false};
    std::thread loads([&] {
        while (!stop)
            if (void* const library = ::dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL))
                ::dlclose(library);
    });
    EXPECT_EQ(answer_of_1, ask(open_node(1)));
    stop = true;
    loads.join();
}

TEST(FirstTouch, WorksWithAnAllocatorThatCallsWhatIsIntercepted)
{
    const char* const before = std::getenv("LD_PRELOAD");
    const std::string command =
        std::string("LD_PRELOAD=") + before + ":" WEFTIO_CALLING_ALLOCATOR " ls /dev/infiniband | wc -l | grep -q 3";
    EXPECT_EQ(0, std::system(command.c_str()));
    const std::string first =
        std::string("LD_PRELOAD=") + WEFTIO_CALLING_ALLOCATOR ":" + before + " ls /dev/infiniband | wc -l | grep -q 3";
    EXPECT_EQ(0, std::system(first.c_str()));
}

} // namespace
} // namespace weftio::test
