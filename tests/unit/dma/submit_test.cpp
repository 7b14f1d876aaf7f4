// dma_queue::submit() beside a kernel that was told to end: its abort flag stays up, and does not concern the host.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "dma_fixture.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class DmaSubmitBesideAKernel : public Dma {
 protected:
    void tell_kernels_to_end() { weftio_store_release_sys_u32(&queue.control()->abort, 1); }
    std::atomic_ref<weftio_u32> commits() { return std::atomic_ref(queue.handle()->queue.ring.commits); }
    dma_fill fill(std::uint32_t pattern) { return {.pattern = pattern, .destination = one.buffer(), .bytes = 4}; }
};

/// A kernel's lane is put aside in the middle of a commit: it takes along what the host leaves to it.
TEST_P(DmaSubmitBesideAKernel, TheHostDoesNotWaitForTheCommitOfAKernel)
{
    weftio_dev_send_ring& ring = queue.handle()->queue.ring;
    weftio_u32 seen = 0;
    ASSERT_TRUE(weftio_dev_send_join_commits(&ring, &seen));
    ASSERT_EQ(seen, 1u);
    EXPECT_EQ(queue.submit(fill(7), WEFTIO_DEV_SEND_NONE), 0u);
    EXPECT_EQ(commits(), 2u);
    EXPECT_EQ(ring.ready, 0u);
    ASSERT_TRUE(weftio_dev_send_leave_commits(&ring, 0, 0, &seen)) << "the host has come meanwhile";
    EXPECT_EQ(seen, 1u);
    EXPECT_FALSE(weftio_dev_send_leave_commits(&ring, 0, 1, &seen));
    EXPECT_EQ(weftio_dev_send_queue_submit(&queue.handle()->queue), WEFTIO_DEV_OK);
    EXPECT_TRUE(eventually([&] { return queue.counters().copied == 1; }));
}

TEST_P(DmaSubmitBesideAKernel, WhatAKernelLeftUncommittedIsNoEndOfTheQueue)
{
    for (std::uint32_t entry = 0; entry != queue.entries(); ++entry)
        ASSERT_EQ(weftio_dev_dma_fill(queue.handle(), entry, one.buffer(), 0, 4, 0), WEFTIO_DEV_OK);
    tell_kernels_to_end();
    EXPECT_FALSE(queue.submit(fill(1))) << "the ring is full";
    EXPECT_TRUE(eventually([&] { return queue.counters().copied == queue.entries(); }));
    EXPECT_EQ(queue.submit(fill(1)), queue.entries());
}

TEST_P(DmaSubmitBesideAKernel, EverySubmitIsExecuted)
{
    constexpr unsigned threads = 4, each = 2000;
    tell_kernels_to_end();
    std::vector<std::thread> hosts;
    for (unsigned number = 0; number != threads; ++number)
        hosts.emplace_back([&] {
            for (unsigned done = 0; done != each;)
                if (queue.submit(fill(done), WEFTIO_DEV_SEND_NONE))
                    ++done;
                else
                    std::this_thread::yield();
        });
    for (std::thread& host : hosts)
        host.join();
    EXPECT_TRUE(eventually([&] { return queue.counters().copied == threads * each; }));
}

/// As the watchdog does with the queues of a kernel that hangs.
TEST_P(DmaSubmitBesideAKernel, AStoppedQueueSaysSo)
{
    detail::internals::line(queue)->quiesce();
    EXPECT_TRUE(queue.failed());
    EXPECT_THAT(error_of([&] { (void)queue.submit(fill(1)); }).what(),
                HasSubstr("running_kernel::watch stopped the queue"));
    queue.reset();
    EXPECT_EQ(queue.submit(fill(1)), 0u);
}

TEST_P(DmaSubmitBesideAKernel, TheWatchdogOfAnEarlierRingStopsNothing)
{
    const auto before = detail::internals::line(queue);
    queue.reset();
    before->quiesce();
    EXPECT_FALSE(queue.failed());
    EXPECT_EQ(queue.submit(fill(1)), 0u);
    detail::internals::line(queue)->quiesce();
    EXPECT_TRUE(queue.failed());
}

/// None waits for the commit of a later one.
TEST_P(DmaSubmitBesideAKernel, EachIsExecutedBeforeTheNext)
{
    for (unsigned done = 1; done <= 100; ++done) {
        ASSERT_TRUE(queue.submit(fill(done), WEFTIO_DEV_SEND_NONE));
        ASSERT_TRUE(eventually([&] { return queue.counters().copied == done; })) << done;
    }
}

INSTANTIATE_TEST_SUITE_P(Modes, DmaSubmitBesideAKernel,
                         testing::Values(engine_mode::thread, engine_mode::inline_worker));

} // namespace
} // namespace weftio::test
