// What lanes of a GPU do because the memory of the host is behind a bus (WEFTIO_HOST_IS_FAR), with threads of the CPU.
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "../txq/checked_ring.hpp"
#include "patience.hpp"
#include "weftio/kernel.hpp"

static_assert(WEFTIO_HOST_IS_FAR == 1);
WEFTIO_DEFINE_KERNEL(publish_in_every_way, "../txq/publication_kernels.h");

namespace weftio::test {
namespace {

const auto patience_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(patience).count());

struct far_case {
    grid shape;
    std::uint32_t depth, start;
};

class FarPublication : public testing::TestWithParam<far_case> {};

TEST_P(FarPublication, NamesWholeEntriesOnceEach)
{
    const far_case& tried = GetParam();
    const std::uint32_t rounds = 8000 / (tried.shape.blocks * std::max(tried.shape.lanes, 10u));
    EXPECT_EQ(play_publications(device::open("cpu"), publish_in_every_way_kernel, tried.shape, tried.depth, tried.start,
                                rounds, patience),
              "");
}

INSTANTIATE_TEST_SUITE_P(Of, FarPublication,
                         testing::Values(far_case{{1, 1}, 64, 0}, far_case{{3, 5}, 64, 0x10000 - 777},
                                         far_case{{4, 40}, 256, 0u - 777}, far_case{{8, 2}, 64, 1}),
                         [](const auto& info) {
                             return fmt::format("{}x{}_depth_{}", info.param.shape.blocks, info.param.shape.lanes,
                                                info.param.depth);
                         });

/// A ring that is full, until the test plays the NIC. The parameter is what `refreshing` counts.
class Refresh : public testing::TestWithParam<std::uint32_t> {
 protected:
    static constexpr std::uint32_t depth = 64, start = 0u - 9;

    void SetUp() override
    {
        for (std::uint32_t number = 0; number < depth; ++number)
            ASSERT_EQ(enqueue(number), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_send_queue_submit(&queue()), WEFTIO_DEV_OK);
    }
    weftio_dev_send_queue& queue() { return checked.handle()->queue; }
    weftio_dev_send_ring& ring() { return queue().ring; }
    weftio_s32 enqueue(std::uint32_t number)
    {
        return weftio_dev_eth_txq_send_enqueue_strong(checked.handle(), publication_frame(number), 64,
                                                      WEFTIO_DEV_SEND_NONE);
    }
    void count(std::uint32_t steps) { weftio_store_release_u32(&ring().refreshing, GetParam() + steps); }
    /// Gives a lane that goes on, but should wait, the time to do so.
    static void let_others_run() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

    device cpu = device::open("cpu");
    checked_ring checked{cpu, depth, start};
    std::vector<std::uint8_t> seen = std::vector<std::uint8_t>(1000);
};

TEST_P(Refresh, DoesNotTakeALoadThatHadBegunForItsOwn)
{
    count(1); // another lane loads the completion, which is the old one
    EXPECT_EQ(checked.turn(seen), depth);
    std::atomic<bool> is_over{false};
    std::thread posts([&] {
        EXPECT_EQ(enqueue(depth), WEFTIO_DEV_OK) << "the ring was not full any more when the lane called";
        is_over = true;
    });
    let_others_run();
    EXPECT_FALSE(is_over) << "the load that is under way may have seen less";
    count(2);
    posts.join();
    EXPECT_EQ(weftio_load_relaxed_u32(&ring().refreshing), GetParam() + 4) << "the lane has loaded for itself";
    EXPECT_EQ(ring().completed, start + depth);
    ASSERT_EQ(weftio_dev_send_queue_submit(&queue()), WEFTIO_DEV_OK);
    EXPECT_EQ(checked.turn(seen), 1u);
    EXPECT_EQ(checked.wrong(), "");
}

TEST_P(Refresh, TakesTheLoadThatAnotherHasBegunMeanwhile)
{
    count(1);
    std::atomic<bool> is_over{false};
    std::uint32_t completed = 0;
    std::thread asks([&] {
        completed = weftio_dev_send_refresh(&ring(), start);
        is_over = true;
    });
    let_others_run();
    count(3); // the first load is over, and a lane that came earlier has begun the next
    let_others_run();
    EXPECT_FALSE(is_over) << "that one is not over";
    weftio_store_release_u32(&ring().completed, start + 7);
    count(4);
    asks.join();
    EXPECT_EQ(completed, start + 7) << "what that lane has found";
    EXPECT_EQ(weftio_load_relaxed_u32(&ring().refreshing), GetParam() + 4) << "no load of its own";
}

TEST_P(Refresh, CountsItsBeginAndItsEnd)
{
    count(0);
    EXPECT_EQ(enqueue(depth), WEFTIO_DEV_FULL);
    EXPECT_EQ(weftio_load_relaxed_u32(&ring().refreshing), GetParam() + 2);
    EXPECT_EQ(checked.turn(seen), depth);
    EXPECT_EQ(enqueue(depth), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_load_relaxed_u32(&ring().refreshing), GetParam() + 4);
}

TEST_P(Refresh, SeesThatTheHostAsksToEndWhileItWaits)
{
    count(0);
    weftio_s32 status = WEFTIO_DEV_OK;
    std::thread waits([&] { status = weftio_dev_send_queue_wait_room(&queue(), 1, patience_ns); });
    let_others_run();
    weftio_store_relaxed_u32(&checked.control()->abort, 1);
    waits.join();
    EXPECT_EQ(status, WEFTIO_DEV_ABORTED);
}

INSTANTIATE_TEST_SUITE_P(From, Refresh, testing::Values(0u, 2u, 0x7ffffffeu, 0u - 4, 0u - 2));

/// Each poster waits for its entry before it posts the next. A ring as deep as there are posters is never full then.
TEST(FarPosters, NeverFindTheRingFullThatIsNot)
{
    constexpr std::uint32_t posters = 8, rounds = 3000;
    device cpu = device::open("cpu");
    checked_ring checked(cpu, posters, 0u - 777);
    weftio_store_relaxed_u32(&checked.handle()->queue.ring.refreshing, 0u - 2000);
    std::vector<std::uint8_t> seen(posters * rounds);
    std::atomic<std::uint32_t> full{0}, other{0}, over{0};
    std::vector<std::thread> threads;
    for (std::uint32_t poster = 0; poster < posters; ++poster)
        threads.emplace_back([&, poster] {
            for (std::uint32_t round = 0; round < rounds && full == 0 && other == 0; ++round) {
                const weftio_s32 status = weftio_dev_eth_txq_send_enqueue_strong(
                    checked.handle(), publication_frame(poster * rounds + round), 64, WEFTIO_DEV_SEND_NONE);
                full += status == WEFTIO_DEV_FULL;
                other += status != WEFTIO_DEV_FULL && status != WEFTIO_DEV_OK;
                if (status == WEFTIO_DEV_OK)
                    other += weftio_dev_send_queue_submit_wait(&checked.handle()->queue, patience_ns) != WEFTIO_DEV_OK;
            }
            ++over;
        });
    std::uint32_t arrived = 0;
    for (; over != posters; std::this_thread::yield())
        arrived += checked.turn(seen);
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(full, 0u);
    EXPECT_EQ(other, 0u);
    EXPECT_EQ(arrived, posters * rounds);
    EXPECT_EQ(checked.wrong(), "");
}

} // namespace
} // namespace weftio::test
