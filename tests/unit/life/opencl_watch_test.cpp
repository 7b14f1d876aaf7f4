// The watch of a kernel that has to be compiled first: it waits for the first sign of life, and not for ever.
#include <cstdlib>
#include <future>
#include <optional>

#include <gmock/gmock.h>

#include "kernels.h"
#include "patience.hpp"
#include "sanitized.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(echo_to_self, "kernels.h");
WEFTIO_DEFINE_KERNEL(never_looks, "kernels.h");

namespace {

using namespace std::chrono_literals;
using weftio::test::eventually, weftio::test::patience;

[[maybe_unused]] const int always_compiled_anew = setenv("POCL_KERNEL_CACHE", "0", 1); // before PoCL looks

class OpenclWatch : public testing::Test {
 protected:
    void SetUp() override
    try {
#ifdef WEFTIO_TEST_SANITIZED
        GTEST_SKIP() << "missed: watching kernels on OpenCL; without its cache PoCL keeps what it compiles, which is a "
                        "leak here";
#endif
        device = weftio::device::open("opencl");
        port = weftio::port::open("loopback");
        rx.emplace(*port, *device, weftio::eth_rxq_options{.packets = 64});
        tx.emplace(*port, *device, weftio::eth_txq_options{.entries = 64});
        frames.emplace(*port, *device, weftio::buf_arr_options{.count = 64, .buffer_bytes = 64});
        words = device->allocate(64, weftio::memory_kind::cpu_device);
        all.emplace(*port, weftio::flow_match{}, weftio::flow_action::to(*rx));
    } catch (const weftio::error& refused) {
        GTEST_SKIP() << "missed: watching kernels on OpenCL; " << refused.what();
    }

    std::uint32_t* word(std::uint32_t at)
    {
        return static_cast<std::uint32_t*>(words.cpu_address()) + at;
    }
    static bool is_there(const std::future<weftio::kernel_report>& report)
    {
        return report.wait_for(1ms) == std::future_status::ready;
    }

    std::optional<weftio::device> device;
    std::optional<weftio::port> port;
    std::optional<weftio::eth_rxq> rx;
    std::optional<weftio::eth_txq> tx;
    std::optional<weftio::buf_arr> frames;
    std::optional<weftio::flow> all;
    weftio::memory words;
};

TEST_F(OpenclWatch, ReportsNoKernelThatIsBeingCompiled)
{
    std::promise<weftio::kernel_report> reported;
    auto report = reported.get_future();
    auto running = device->launch(echo_to_self_kernel, {}, *rx, *tx, *frames, 8u, word(1));
    running.watch(
        {.period = 5ms, .on_report = [&](const auto& seen) { reported.set_value(seen); }}); // no compiler is so fast
    EXPECT_TRUE(eventually([&] { return is_there(report) || weftio_load_acquire_sys_u32(word(1)) != 0; }));
    if (is_there(report)) { // a busy machine keeps a kernel that has begun from its core for so long
        const weftio::kernel_report seen = report.get();
        EXPECT_GT(seen.queues.at(0).beats + seen.queues.at(1).beats, 0u) << seen.text;
    } else
        EXPECT_EQ(weftio_load_acquire_sys_u32(word(1)), 8u);
    running.stop();
    EXPECT_TRUE(running.wait_for(patience));
}

TEST_F(OpenclWatch, ReportsOneThatNeverShowsASignOfLife)
{
    std::promise<weftio::kernel_report> reported;
    auto report = reported.get_future();
    auto running = device->launch(never_looks_kernel, {}, *rx, *tx, word(0));
    running.watch({.period = 5ms, .start = 300ms, .on_report = [&](const auto& seen) { reported.set_value(seen); }});
    ASSERT_EQ(report.wait_for(patience), std::future_status::ready);
    EXPECT_THAT(report.get().text, testing::HasSubstr("kernel never_looks did not start within 300 ms"));
    weftio_store_release_sys_u32(word(0), 1);
    EXPECT_TRUE(running.wait_for(patience));
}

} // namespace
