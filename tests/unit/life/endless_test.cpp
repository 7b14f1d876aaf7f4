// Bounds of the host that are as long, or as short, as their type allows.
#include "kernels.h"

#include <atomic>

#include <gtest/gtest.h>

#include "unit/device/fixture.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(waits_and_beats, "kernels.h");

namespace {

using namespace std::chrono_literals;
using weftio::test::patience;

class EndlessBound : public testing::Test {
 protected:
    void let_go() { weftio_store_release_sys_u32(static_cast<std::uint32_t*>(word.cpu_address()), 1); }

    weftio::device device = weftio::device::open("cpu");
    weftio::semaphore items{device, {.items = 1}};
    weftio::memory word = device.allocate(64, weftio::memory_kind::cpu_device);
    weftio::running_kernel running =
        device.launch(waits_and_beats_kernel, {}, items, static_cast<std::uint32_t*>(word.device_address()));
};

TEST_F(EndlessBound, OfAWaitForTheKernelIsNotOverBeforeItsEnd)
{
    std::atomic<bool> let{false};
    std::thread letting([&] {
        std::this_thread::sleep_for(30ms);
        let = true;
        let_go();
    });
    EXPECT_TRUE(running.wait_for(std::chrono::nanoseconds::max()));
    EXPECT_TRUE(let);
    letting.join();
}

TEST_F(EndlessBound, BelowZeroIsALook)
{
    EXPECT_FALSE(running.wait_for(std::chrono::nanoseconds::min()));
    EXPECT_FALSE(running.wait_for(-1ns));
    let_go();
    ASSERT_TRUE(running.wait_for(patience));
    EXPECT_TRUE(running.wait_for(std::chrono::nanoseconds::min()));
}

TEST_F(EndlessBound, OfAWatchIsNotOverAtOnce)
{
    std::atomic<bool> reported{false};
    running.watch({.period = std::chrono::milliseconds::max(), .on_report = [&](const auto&) { reported = true; }});
    EXPECT_FALSE(running.wait_for(50ms));
    EXPECT_FALSE(reported);
    let_go();
    EXPECT_TRUE(running.wait_for(patience));
    running = {};
    EXPECT_FALSE(reported);
}

} // namespace
