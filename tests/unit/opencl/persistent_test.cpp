// Kernels that run until they are told to stop: several at once, the bound on how many, the clock, and the end of
// things.

#include <cstdint>
#include <thread>

#include "devices/opencl/discovery.hpp"
#include "opencl_fixture.hpp"
#include "weftio/device/queue/control.h"

namespace weftio::test {
namespace {

constexpr const char* source = R"cl(
WEFTIO_KERNEL void until_stopped(WEFTIO_GLOBAL struct weftio_dev_control *control)
{
    while (!weftio_dev_aborted(control))
        weftio_dev_beat(control, &control->beats, WEFTIO_DEV_FUNCTION_NONE, 0, WEFTIO_DEV_OK);
}

/* Every block of the grid says that it runs, then waits for the host. */
WEFTIO_KERNEL void all_until_stopped(WEFTIO_GLOBAL struct weftio_dev_control *control,
                                     WEFTIO_GLOBAL weftio_u32 *arrived)
{
    if (weftio_lane() == 0)
        weftio_fetch_add_u32(arrived, 1);
    while (!weftio_dev_aborted(control))
        ;
}

/* Two of these can only end together: each waits for the other's step. */
WEFTIO_KERNEL void take_turns(WEFTIO_GLOBAL weftio_u32 *turn, weftio_u32 parity, weftio_u32 last)
{
    for (weftio_u32 mine = parity; mine < last; mine += 2) {
        while (weftio_load_acquire_sys_u32(turn) != mine)
            ;
        weftio_store_release_sys_u32(turn, mine + 1);
    }
}

WEFTIO_KERNEL void wait_on_the_clock(const WEFTIO_GLOBAL struct weftio_dev_clock *clock, weftio_u64 ns,
                                     WEFTIO_GLOBAL weftio_u64 *times)
{
    times[0] = weftio_dev_clock_ns(clock);
    do
        times[1] = weftio_dev_clock_ns(clock);
    while (times[1] - times[0] < ns);
}
)cl";

std::uint64_t steady_ns()
{
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

/// Waits until `word` is at least `value`. Returns whether it became so within `patience`.
bool reaches(const std::uint32_t& word, std::uint32_t value)
{
    return eventually([&] { return weftio_load_acquire_sys_u32(&word) >= value; });
}

class OpenclPersistent : public opencl_fixture {
 protected:
    /// Ends everything that was given this control block.
    static void stop(const array<weftio_dev_control>& control) { weftio_store_relaxed_u32(&control[0].abort, 1); }

    std::uint32_t units() const
    {
        std::vector<devices::opencl::found_device> devices = devices::opencl::find_devices();
        return devices::opencl::choose(devices, -1).facts.compute_units;
    }
};

TEST_F(OpenclPersistent, RunsUntilItsControlBlockSaysStop)
{
    auto control = allocate<weftio_dev_control>(1);
    auto running = launch(source, "until_stopped", {1, 1}, control.data());

    EXPECT_TRUE(reaches(control[0].beats, 1)) << "launch returns before the kernel has begun";
    EXPECT_FALSE(running->wait_for(20ms));
    stop(control);
    EXPECT_TRUE(running->wait_for(patience));
    EXPECT_TRUE(running->wait_for(0ns)) << "the end is remembered";
}

TEST_F(OpenclPersistent, WaitsWithTheLongestBoundThereIs)
{
    auto control = allocate<weftio_dev_control>(1);
    auto running = launch(source, "until_stopped", {1, 1}, control.data());

    stop(control);
    EXPECT_TRUE(running->wait_for(std::chrono::nanoseconds::max()));
}

TEST_F(OpenclPersistent, TwoKernelsRunAtTheSameTime)
{
    if (units() < 2)
        GTEST_SKIP() << "missed: two kernels at once; the device has one compute unit";
    constexpr std::uint32_t turns = 100;
    auto turn = allocate<std::uint32_t>(1);

    auto even = launch(source, "take_turns", {1, 1}, turn.data(), 0u, turns);
    auto odd = launch(source, "take_turns", {1, 1}, turn.data(), 1u, turns);
    EXPECT_TRUE(even->wait_for(patience));
    EXPECT_TRUE(odd->wait_for(patience));
    EXPECT_EQ(turn[0], turns);
}

TEST_F(OpenclPersistent, AsManyBlocksAsComputeUnitsAllRunAtOnce)
{
    auto control = allocate<weftio_dev_control>(1);
    auto arrived = allocate<std::uint32_t>(1);

    auto running = launch(source, "all_until_stopped", {units(), 4}, control.data(), arrived.data());
    EXPECT_TRUE(reaches(arrived[0], units()));
    stop(control);
    EXPECT_TRUE(running->wait_for(patience));
}

TEST_F(OpenclPersistent, BlocksThatCouldNotAllRunAreRefusedUntilOthersHaveEnded)
{
    auto control = allocate<weftio_dev_control>(1);
    auto running = launch(source, "until_stopped", {1, 1}, control.data());

    auto [code, text] = refusal_of([&] { launch(source, "until_stopped", {units(), 1}, control.data()); });
    EXPECT_EQ(code, errc::invalid_argument);
    EXPECT_THAT(text, testing::HasSubstr("1 runs already"));
    EXPECT_THAT(text, testing::HasSubstr(std::to_string(units()) + " compute unit"));

    stop(control);
    ASSERT_TRUE(running->wait_for(patience));
    EXPECT_TRUE(launch(source, "until_stopped", {units(), 1}, control.data())->wait_for(patience));
}

TEST_F(OpenclPersistent, SaysHowPoclGetsMoreComputeUnits)
{
    if (!devices::opencl::choose(devices::opencl::find_devices(), -1).facts.pocl)
        GTEST_SKIP() << "missed: the advice for PoCL; this is another platform";
    std::uint32_t blocks = units() + 3;

    auto text = refusal_of([&] {
                    launch(source, "until_stopped", {blocks, 1}, static_cast<weftio_dev_control*>(nullptr));
                }).second;
    EXPECT_THAT(text, testing::HasSubstr("POCL_MAX_PTHREAD_COUNT=" + std::to_string(blocks)));
}

TEST_F(OpenclPersistent, ClockAdvancesWhileAKernelRunsAndRestsAfterwards)
{
    auto times = allocate<std::uint64_t>(2);
    std::uint64_t before = steady_ns();

    run(source, "wait_on_the_clock", {1, 1}, device_->clock(), std::uint64_t{2'000'000}, times.data());
    EXPECT_GE(times[0], before);
    EXPECT_GE(times[1] - times[0], 2'000'000u);
    EXPECT_LE(times[1], steady_ns());

    std::uint64_t rest = weftio_load_acquire_sys_u64(&device_->clock()->now_ns);
    std::this_thread::sleep_for(5ms);
    EXPECT_EQ(weftio_load_acquire_sys_u64(&device_->clock()->now_ns), rest);
}

TEST_F(OpenclPersistent, KeepsItsDeviceAliveUntilItHasEnded)
{
    auto control = allocate<weftio_dev_control>(1);
    std::weak_ptr<devices::device_backend> device = device_;
    auto running = launch(source, "until_stopped", {1, 1}, control.data());

    device_.reset();
    EXPECT_FALSE(device.expired());
    EXPECT_FALSE(running->wait_for(10ms));
    stop(control);
    EXPECT_TRUE(running->wait_for(patience));
}

TEST_F(OpenclPersistent, LeftBehindKeepsItsMemoryAndItsDeviceForGood)
{
    std::weak_ptr<devices::device_backend> device = device_;
    auto memory = device_->allocate(sizeof(weftio_dev_control), 64, memory_kind::cpu_device);
    auto* control = static_cast<weftio_dev_control*>(memory.cpu);

    launch(source, "until_stopped", {1, 1}, control).reset();
    device_->release(memory, memory_kind::cpu_device);
    weftio_store_relaxed_u32(&control->abort,
                             1); // the kernel reads this; and it is still an argument that can be given
    run(source, "until_stopped", {1, 1}, control);
    device_.reset();
    EXPECT_FALSE(device.expired());
}

TEST_F(OpenclPersistent, GivesItsDeviceBackAtTheEnd)
{
    auto control = device_->allocate(sizeof(weftio_dev_control), 64, memory_kind::cpu_device);
    std::weak_ptr<devices::device_backend> device = device_;
    auto running = launch(source, "until_stopped", {1, 1}, static_cast<weftio_dev_control*>(control.device));

    weftio_store_relaxed_u32(&static_cast<weftio_dev_control*>(control.cpu)->abort, 1);
    ASSERT_TRUE(running->wait_for(patience));
    running.reset();
    device_.reset();
    EXPECT_TRUE(device.expired()) << "and freed what was left of its memory";
}

} // namespace
} // namespace weftio::test
