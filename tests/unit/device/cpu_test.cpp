// What the CPU device does beyond what every device must.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "cpu_kernels.h"
#include "devices/cpu/lane_order.hpp"
#include "devices/cpu/stack_pool.hpp"
#include "fixture.hpp"
#include "weftio/log.hpp"

namespace weftio::test {

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

template <class... Parameters>
kernel<Parameters...> cpu_kernel(const char* name, void (*function)(Parameters...))
{
    return {.name = name, .function = function, .source = {}, .cuda_image = {}};
}

class CpuDevice : public testing::Test {
 protected:
    template <class... Parameters, class... Arguments>
    void run(const char* name, void (*function)(Parameters...), grid shape, Arguments&&... arguments)
    {
        running_kernel running = device_.launch(cpu_kernel(name, function), shape, arguments...);
        ASSERT_TRUE(running.wait_for(patience));
    }

    device device_ = device::open("cpu");
};

TEST_F(CpuDevice, MemoryOfKindDeviceHasNoCpuAddress)
{
    memory hidden = device_.allocate(100, memory_kind::device);
    EXPECT_EQ(hidden.cpu_address(), nullptr);
    EXPECT_NE(hidden.device_address(), nullptr);
    for (memory_kind kind : {memory_kind::device_cpu, memory_kind::cpu_device}) {
        memory seen = device_.allocate(100, kind);
        EXPECT_EQ(seen.cpu_address(), seen.device_address());
        EXPECT_EQ(seen.kind(), kind);
    }
}

TEST_F(CpuDevice, RefusesAKindOfMemoryThatIsNone)
{
    for (int kind : {-1, 3, 9}) {
        const error refused = error_of([&] { (void)device_.allocate(64, static_cast<memory_kind>(kind)); });
        EXPECT_EQ(refused.code(), errc::invalid_argument);
        EXPECT_EQ(refused.what(), fmt::format("weftio: device memory: kind is {}, not a kind of memory; use "
                                              "memory_kind::cpu_device, device_cpu or device",
                                              kind));
    }
}

TEST_F(CpuDevice, RefusesGridsBeyondItsLimits)
{
    auto refusal = [this](grid shape) {
        error refused = error_of([&] { (void)device_.launch(cpu_kernel("throw_number", throw_number), shape); });
        EXPECT_EQ(refused.code(), errc::invalid_argument);
        return std::string(refused.what());
    };
    EXPECT_THAT(refusal({1025, 1}), HasSubstr("at most 1024 blocks of 1024 lanes, not 1025 of 1"));
    EXPECT_THAT(refusal({1, 1025}), HasSubstr("at most 1024 blocks of 1024 lanes, not 1 of 1025"));
    EXPECT_THAT(refusal({1024, 32}), HasSubstr("need 32768 stacks, the CPU device has 16384"));
}

TEST_F(CpuDevice, RunsAsManyLanesAsItSays)
{
    shared_words word(device_, 1);
    run("count_lanes", count_lanes, {2, 1024}, word.on_device());
    run("count_lanes", count_lanes, {200, 1}, word.on_device());
    EXPECT_EQ(word[0], 2248u);
}

TEST_F(CpuDevice, WarpsHave32LanesAndTheLastMayBeNarrower)
{
    shared_words words(device_, 2 * 70);
    run("count_warp", count_warp, {1, 70}, words.on_device());
    for (weftio_u32 lane = 0; lane < 70; ++lane)
        EXPECT_EQ(words[2 * lane], lane < 64 ? 32u : 6u) << lane;
}

TEST_F(CpuDevice, LanesThatHaveEndedDoNotCountInBarriersAndSums)
{
    shared_words words(device_, 70);
    run("leave_early", leave_early, {1, 70}, words.on_device(), 40);
    for (weftio_u32 lane = 0; lane < 70; ++lane)
        EXPECT_EQ(words[lane], lane < 32 ? 40'032u : lane < 40 ? 40'008u : 0u) << lane;
}

TEST_F(CpuDevice, TheLastLaneToLeaveOpensTheBarrier)
{
    for (weftio_u32 late : {0u, 20u, 39u}) {
        shared_words words(device_, 2);
        run("leave_late", leave_late, {1, 40}, words.on_device(), late);
        EXPECT_EQ(words[1], 39u);
    }
}

TEST_F(CpuDevice, ALaneThatRelaxesLetsTheOthersRun)
{
    shared_words words(device_, 1 + 8);
    run("wait_for_last_lane", wait_for_last_lane, {1, 8}, words.on_device());
    EXPECT_EQ(words.all(), std::vector<weftio_u32>(9, 1));
}

TEST_F(CpuDevice, LanesHaveDeepStacksOfTheirOwn)
{
    constexpr weftio_u32 depth = 64; // of 1 KiB frames
    shared_words words(device_, 100);
    run("use_stack", use_stack, {1, 100}, words.on_device(), depth);
    for (weftio_u32 lane = 0; lane < 100; ++lane)
        EXPECT_EQ(words[lane], (depth + 1) * lane + depth * (depth + 1) / 2) << lane;
}

TEST_F(CpuDevice, BlockThreadsHaveNames)
{
    memory names = device_.allocate(2 * 16, memory_kind::cpu_device);
    run("write_thread_name", write_thread_name, {2, 1}, names.device_address());
    EXPECT_STREQ(static_cast<const char*>(names.cpu_address()), "weftio/b0");
    EXPECT_STREQ(static_cast<const char*>(names.cpu_address()) + 16, "weftio/b1");
}

TEST_F(CpuDevice, BlocksRunAtTheSameTime)
{
    stop_button button(device_);
    shared_words words(device_, 6);
    running_kernel running =
        device_.launch(cpu_kernel("wait_for_abort", wait_for_abort), {6, 2}, button, words.on_device());
    EXPECT_TRUE(eventually([&] { return words.all() == std::vector<weftio_u32>(6, 1); }));
    running.stop();
    EXPECT_TRUE(running.wait_for(std::chrono::nanoseconds::max()));
}

TEST_F(CpuDevice, ALaneThatThrowsIsAFaultThatEndsTheWholeKernel)
{
    for (weftio_u32 thrower : {0u, 4u}) { // before and after the others have come to wait
        stop_button button(device_);
        auto faulty = cpu_kernel("throw_in_lane", throw_in_lane);
        running_kernel running = device_.launch(faulty, {3, 5}, button, 1, thrower);
        error fault = error_of([&] { running.wait_for(patience); });
        EXPECT_EQ(fault.code(), errc::device_error);
        EXPECT_THAT(fault.what(), HasSubstr("kernel throw_in_lane on the CPU, block 1: lane " +
                                            std::to_string(thrower) + " threw the exception \"a bad day\""));
        EXPECT_FALSE(running.alive());
        EXPECT_EQ(error_of([&] { running.wait_for(patience); }).what(), std::string(fault.what()));
    }
}

TEST_F(CpuDevice, AFaultEndsBlocksOfOneLaneThroughTheirQueues)
{
    stop_button button(device_);
    running_kernel running = device_.launch(cpu_kernel("throw_in_lane", throw_in_lane), {3, 1}, button, 2, 0);
    EXPECT_EQ(error_of([&] { running.wait_for(patience); }).code(), errc::device_error);
    EXPECT_EQ(button.pressed(), 1u);
}

TEST_F(CpuDevice, AFaultEndsBlocksOfSeveralLanesThatHaveNoQueue)
{
    running_kernel running = device_.launch(cpu_kernel("throw_or_wait", throw_or_wait), {3, 2});
    EXPECT_THAT(error_of([&] { running.wait_for(patience); }).what(),
                AllOf(HasSubstr("block 0: lane "), HasSubstr(" threw the exception \"no queue\"")));
}

TEST_F(CpuDevice, AnythingThrownIsAFault)
{
    running_kernel running = device_.launch(cpu_kernel("throw_number", throw_number), {1, 1});
    EXPECT_THAT(error_of([&] { running.wait_for(patience); }).what(), HasSubstr("an exception of unknown type"));
}

TEST_F(CpuDevice, ADeadlockIsAFaultThatSaysWhichLanesWaitWhere)
{
    shared_words words(device_, 2);
    running_kernel running = device_.launch(cpu_kernel("disagree", disagree), {1, 40}, words.on_device());
    error fault = error_of([&] { running.wait_for(patience); });
    EXPECT_EQ(fault.code(), errc::device_error);
    EXPECT_THAT(fault.what(), StartsWith("weftio: kernel disagree on the CPU, block 0: deadlock: "
                                         "lanes wait at the block barrier (0-2, 4, 10-11, 13-39), "
                                         "lanes wait at their warp's barrier (3, 5-9), returned: 12;"));
    EXPECT_EQ(words[0], 0u) << "lanes were not unwound";
    EXPECT_EQ(words[1], 0u) << "a lane went on";
}

TEST_F(CpuDevice, ABarrierAndASumDoNotMeet)
{
    running_kernel running = device_.launch(cpu_kernel("disagree_on_kind", disagree_on_kind), {1, 20});
    EXPECT_THAT(error_of([&] { running.wait_for(patience); }).what(),
                HasSubstr("block barrier (0, 2, 4, 6, 8, 10, 12, 14, ...), lanes wait at the block sum (1, 3, 5, "));
}

TEST_F(CpuDevice, StacksAreUsedAgainAfterAFault)
{
    shared_words words(device_, 2);
    constexpr int launches = devices::cpu::stack_pool::limit / 1024 + 1;
    for (int launch = 0; launch < launches; ++launch) {
        running_kernel running = device_.launch(cpu_kernel("disagree", disagree), {1, 1024}, words.on_device());
        ASSERT_THAT(error_of([&] { running.wait_for(patience); }).what(), HasSubstr("deadlock"));
    }
}

TEST_F(CpuDevice, AFaultOfShuffledLanesNamesTheSeed)
{
    setenv("WEFTIO_SHUFFLE_SEED", "1234567", 1);
    device shuffled = device::open("cpu");
    bool by_this_build = devices::cpu::shuffle_seed().has_value();
    unsetenv("WEFTIO_SHUFFLE_SEED");
    if (!by_this_build)
        GTEST_SKIP() << "lanes are not shuffled: needs a build with WEFTIO_SHUFFLE_LANES";
    running_kernel running = shuffled.launch(cpu_kernel("disagree_on_kind", disagree_on_kind), {1, 20});
    EXPECT_THAT(error_of([&] { running.wait_for(patience); }).what(), HasSubstr("WEFTIO_SHUFFLE_SEED=1234567"));
}

/// Collects what the library logs.
class Log : public CpuDevice {
 protected:
    Log()
    {
        set_log_sink([this](log_level level, std::string_view line) {
            if (level >= log_level::warning)
                lines_.emplace_back(line);
        });
    }
    ~Log() override { set_log_sink({}); }

    std::vector<std::string> lines_;
};

TEST_F(Log, HasTheFaultThatNobodyWaitedFor)
{
    {
        running_kernel running = device_.launch(cpu_kernel("throw_number", throw_number), {1, 1});
    }
    EXPECT_THAT(lines_, testing::ElementsAre(HasSubstr("lane 0 threw an exception")));
}

TEST_F(Log, HasNoFaultThatWasThrownAlready)
{
    {
        running_kernel running = device_.launch(cpu_kernel("throw_number", throw_number), {1, 1});
        EXPECT_THROW(running.wait_for(patience), error);
    }
    EXPECT_THAT(lines_, testing::IsEmpty());
}

TEST_F(Log, SaysThatAKernelWasLeftBehindAndItsMemoryStays)
{
    auto button = std::make_unique<stop_button>(device_);
    auto words = std::make_unique<shared_words>(device_, 2);
    weftio_u32* raw = words->on_device();
    {
        auto stubborn = cpu_kernel("ignore_abort", ignore_abort);
        running_kernel running = device_.launch(stubborn, {1, 1}, *button, raw);
        ASSERT_TRUE(eventually([&] { return weftio_load_acquire_sys_u32(&button->control()->beats) == 1; }));
    }
    EXPECT_THAT(lines_, testing::ElementsAre(HasSubstr("still runs 5 s after it was asked to stop")));
    button.reset();
    words.reset();
    weftio_store_release_sys_u32(&raw[0], 1); // AddressSanitizer would tell if it had been freed
    EXPECT_TRUE(eventually([&] { return weftio_load_acquire_sys_u32(&raw[1]) == 1; }));
}

} // namespace

} // namespace weftio::test
