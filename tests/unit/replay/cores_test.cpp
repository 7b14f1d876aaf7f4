// Cores and the limits of real-time threads.
#include <gtest/gtest.h>

#include <sched.h>
#include <thread>

#include "scratch.hpp"
#include "send/cores.hpp"

namespace weftio::replay::test {
namespace {

TEST(RealTimeLimit, IsNamedWithTheCommandThatLiftsItAndTheOneThatSetsItBack)
{
    scratch files;
    files.write("sched_rt_period_us", "1000000\n");
    files.write("sched_rt_runtime_us", "950000\n");
    std::string limit = realtime_limit(files.path("."));
    for (const char* wanted : {"50 ms in every 1000 ms", "sched_rt_runtime_us=-1", "sched_rt_runtime_us=950000"})
        EXPECT_NE(limit.find(wanted), std::string::npos) << limit;
}

TEST(RealTimeLimit, IsNoneWhereItIsLiftedOrUnknown)
{
    scratch files;
    EXPECT_EQ(realtime_limit(files.path(".")), "");
    files.write("sched_rt_period_us", "1000000\n");
    for (const char* free : {"-1\n", "1000000\n"}) {
        files.write("sched_rt_runtime_us", free);
        EXPECT_EQ(realtime_limit(files.path(".")), "") << free;
    }
}

TEST(Cores, OfTheOthersAreAllButTheEngines)
{
    auto spare = spare_core();
    if (!spare)
        GTEST_SKIP() << "threads that leave a core to another, which needs two cores";
    std::thread([&] { // its affinity ends with it
        stay_off(*spare);
        cpu_set_t set;
        ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
        EXPECT_FALSE(CPU_ISSET(static_cast<std::size_t>(*spare), &set));
        while (auto next = spare_core())
            stay_off(*next);
        for (int core = 0; core < *spare; ++core) // one of them is all that is left
            stay_off(core);
        ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
        EXPECT_EQ(CPU_COUNT(&set), 1);
    })
        .join();
}

} // namespace
} // namespace weftio::replay::test
