// Kernels that hang or leave are noticed, their queues stop and start again.
#include "kernels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <future>

#include "patience.hpp"
#include "weftio/weftio.hpp"

WEFTIO_DEFINE_KERNEL(echo_to_self, "kernels.h");
WEFTIO_DEFINE_KERNEL(never_looks, "kernels.h");
WEFTIO_DEFINE_KERNEL(sleeps_in_commit, "kernels.h");
WEFTIO_DEFINE_KERNEL(exits_early, "kernels.h");
WEFTIO_DEFINE_KERNEL(sleeps_over_an_item, "kernels.h");

namespace {

using namespace std::chrono_literals;
constexpr std::uint32_t depth = 64;
using weftio::test::eventually, weftio::test::patience;

/// WEFTIO_HANGS=1000 runs the full count.
int hangs()
{
    const char* wanted = std::getenv("WEFTIO_HANGS");
    return wanted ? std::atoi(wanted) : 60;
}

class KernelLife : public testing::Test {
 protected:
    using misbehaving = weftio::kernel<weftio_dev_eth_rxq*, weftio_dev_eth_txq*, std::uint32_t*>;

    std::uint32_t* word(std::uint32_t at) { return static_cast<std::uint32_t*>(words.cpu_address()) + at; }

    /// Launches, waits for the report, lets the kernel go. The report as it came.
    /// @param begins  what the kernel has done before it is watched
    weftio::kernel_report hang(const misbehaving& kernel,
                               const std::function<bool(const weftio::running_kernel&)>& begins = {})
    {
        std::promise<weftio::kernel_report> reported;
        weftio_store_release_sys_u32(word(0), 0);
        auto running = device.launch(kernel, {}, rx, tx, word(0));
        EXPECT_TRUE(!begins || eventually([&] { return begins(running); }));
        running.watch(
            {.period = 10ms, .on_report = [&](const weftio::kernel_report& report) { reported.set_value(report); }});
        auto report = reported.get_future();
        bool came = report.wait_for(patience) == std::future_status::ready;
        weftio_store_release_sys_u32(word(0), 1);
        EXPECT_TRUE(running.wait_for(patience));
        EXPECT_TRUE(came);
        return came ? report.get() : weftio::kernel_report{};
    }

    /// Whether a watch leaves a kernel that beats alone for some periods. A busy machine may keep it from a core for
    /// longer than a short period.
    template <class Launch>
    bool is_left_alone(Launch&& launch)
    {
        for (auto period : {1s, 4s, 16s}) {
            std::atomic<bool> reported{false};
            weftio::running_kernel running = launch();
            running.watch({.period = period, .on_report = [&](const weftio::kernel_report&) { reported = true; }});
            for (auto end = std::chrono::steady_clock::now() + period * 5 / 2;
                 !reported && std::chrono::steady_clock::now() < end;)
                std::this_thread::sleep_for(10ms);
            running.stop();
            EXPECT_TRUE(running.wait_for(patience));
            if (!reported)
                return true;
        }
        return false;
    }

    /// Resets both queues and sends frames through them.
    void expect_restart()
    {
        auto delivered = rx.counters().delivered;
        rx.reset();
        tx.reset();
        weftio_store_release_sys_u32(word(1), 0);
        auto running = device.launch(echo_to_self_kernel, {}, rx, tx, frames, 8u, word(1));
        EXPECT_TRUE(eventually([&] { return weftio_load_acquire_sys_u32(word(1)) != 0; }));
        running.stop();
        ASSERT_TRUE(running.wait_for(patience));
        EXPECT_EQ(weftio_load_acquire_sys_u32(word(1)), 8u);
        EXPECT_EQ(rx.counters().delivered, delivered + 8);
    }

    weftio::device device = weftio::device::open("cpu");
    weftio::port port = weftio::port::open("loopback");
    weftio::eth_rxq rx{port, device, {.packets = depth}};
    weftio::eth_txq tx{port, device, {.entries = depth}};
    weftio::buf_arr frames{port, device, {.count = depth, .buffer_bytes = 64}};
    weftio::memory words = device.allocate(64, weftio::memory_kind::cpu_device);
    weftio::flow all{port, {}, weftio::flow_action::to(rx)};
};

TEST_F(KernelLife, OneThatNeverLooksAtItsQueuesIsReportedAndTheQueuesRestart)
{
    auto report = hang(never_looks_kernel);
    EXPECT_FALSE(report.ended);
    ASSERT_EQ(report.queues.size(), 2u);
    EXPECT_EQ(report.queues[0].beats, 0u);
    EXPECT_NE(report.text.find("never touched"), std::string::npos) << report.text;
    EXPECT_EQ(rx.counters().flushed, depth); // posted = completed + flushed
    expect_restart();
}

TEST_F(KernelLife, OneThatSleepsInACriticalSectionIsReportedWithWhatItDidLast)
{
    auto report = hang(sleeps_in_commit_kernel,
                       [&](const auto&) { return weftio_load_acquire_sys_u32(&tx.handle()->queue.ring.commits) != 0; });
    EXPECT_FALSE(report.ended);
    ASSERT_EQ(report.queues.size(), 2u);
    EXPECT_STREQ(report.queues[0].function, "receive");
    EXPECT_NE(report.text.find("sleeps_in_commit has sent no heartbeat"), std::string::npos) << report.text;
    expect_restart();
}

TEST_F(KernelLife, OneThatReturnsUnaskedIsReportedAsEnded)
{
    auto report = hang(exits_early_kernel, [](const weftio::running_kernel& running) { return !running.alive(); });
    EXPECT_TRUE(report.ended);
    EXPECT_NE(report.text.find("ended without being asked to stop"), std::string::npos) << report.text;
    expect_restart();
}

/// Hands out `count` items and waits until they are done.
void expect_items_done(weftio::semaphore& items, std::uint32_t count)
{
    for (std::uint32_t item = 0; item < count; ++item)
        items.set_packet_info(item, weftio::semaphore_status::ready, {});
    EXPECT_TRUE(eventually([&] { return items.get_status(count - 1) == weftio::semaphore_status::done; }))
        << weftio::detail::internals::line(items)->describe();
}

TEST_F(KernelLife, OneThatUsesOnlyASemaphoreIsWatchedByIt)
{
    weftio::semaphore items(device, {.items = 8});
    for (int life = 0; life < 2; ++life) {
        std::promise<weftio::kernel_report> reported;
        weftio_store_release_sys_u32(word(0), 0);
        auto running = device.launch(sleeps_over_an_item_kernel, {}, items, word(0));
        auto report = reported.get_future();
        expect_items_done(items, 2);
        EXPECT_TRUE(eventually([&] { return weftio_load_relaxed_u32(&items.control()->index) == 2; })) << "waits";
        items.set_status(2, weftio::semaphore_status::ready);
        EXPECT_TRUE(eventually([&] { return items.get_status(2) == weftio::semaphore_status::done; })) << "hangs";
        running.watch(
            {.period = 10ms, .on_report = [&](const weftio::kernel_report& seen) { reported.set_value(seen); }});
        ASSERT_EQ(report.wait_for(patience), std::future_status::ready);
        auto seen = report.get();
        ASSERT_EQ(seen.queues.size(), 1u);
        EXPECT_STREQ(seen.queues[0].function, "semaphore");
        EXPECT_EQ(seen.queues[0].index, 2u);
        EXPECT_NE(seen.text.find("semaphore of 8 items: 5 FREE, 0 READY, 0 HOLD, 3 DONE, 0 ERROR"), std::string::npos)
            << seen.text;
        items.reset(); // while the kernel still holds what it had
        EXPECT_EQ(items.get_status(0), weftio::semaphore_status::free);
        weftio_store_release_sys_u32(word(0), 1);
        EXPECT_TRUE(running.wait_for(patience));
    }
}

TEST_F(KernelLife, ManyHangsInARowLeaveNothingBehind)
{
    const misbehaving* kinds[] = {&never_looks_kernel, &sleeps_in_commit_kernel, &exits_early_kernel};
    for (int round = 0; round < hangs() && !HasFailure(); ++round) {
        EXPECT_EQ(hang(*kinds[round % 3]).queues.size(), 2u);
        expect_restart();
        auto sent = tx.counters();
        EXPECT_EQ(sent.enqueued, sent.sent + sent.waited + sent.failed + sent.flushed);
    }
}

TEST_F(KernelLife, AKernelThatBeatsIsLeftAlone)
{
    EXPECT_TRUE(is_left_alone([&] {
        rx.reset();
        tx.reset();
        return device.launch(echo_to_self_kernel, {}, rx, tx, frames, 8u, word(1));
    }));
}

TEST_F(KernelLife, AKernelThatWaitsForAnItemIsLeftAlone)
{
    weftio::semaphore items(device, {.items = 8});
    EXPECT_TRUE(is_left_alone([&] {
        items.reset();
        return device.launch(sleeps_over_an_item_kernel, {}, items, word(0));
    }));
}

TEST_F(KernelLife, DumpShowsTheQueuesAtAnyTime)
{
    auto running = device.launch(echo_to_self_kernel, {}, rx, tx, frames, 8u, word(1));
    EXPECT_TRUE(eventually([&] { return weftio_load_acquire_sys_u32(word(1)) != 0; }));
    std::string text = running.dump();
    EXPECT_NE(text.find("eth_rxq 0 on loopback: 64 slots, 8 delivered"), std::string::npos) << text;
    EXPECT_NE(text.find("8 sent"), std::string::npos) << text;
    EXPECT_NE(text.find("block 0 was last in receive"), std::string::npos) << text;
    running.stop();
    EXPECT_TRUE(running.wait_for(patience));
}

TEST_F(KernelLife, AQueueMayBeDestroyedWhileALeftKernelStillUsesItsMemory)
{
    weftio_store_release_sys_u32(word(0), 0);
    auto queue = std::make_unique<weftio::eth_rxq>(port, device, weftio::eth_rxq_options{.packets = depth});
    auto running = device.launch(never_looks_kernel, {}, *queue, tx, word(0));
    queue.reset();
    EXPECT_TRUE(running.alive());
    weftio_store_release_sys_u32(word(0), 1);
    EXPECT_TRUE(running.wait_for(patience));
}

TEST_F(KernelLife, WatchRefusesAPeriodOfNothingAndAKernelWithoutQueues)
{
    auto running = device.launch(echo_to_self_kernel, {}, rx, tx, frames, 1u, word(1));
    EXPECT_THROW(running.watch({.period = 0ms, .on_report = {}}), weftio::error);
    running.stop();
    EXPECT_TRUE(running.wait_for(patience));
}

} // namespace
