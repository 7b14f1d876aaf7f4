// Strong entries of many lanes, warps and blocks: each is whole when the doorbell record names it, and is there once.
#include "checked_ring.hpp"
#include "sending_port.hpp"
#include "weftio/kernel.hpp"

WEFTIO_DEFINE_KERNEL(publish_in_every_way, "publication_kernels.h");

namespace weftio::test {
namespace {

struct publication_case {
    const char* device;
    grid shape;
    std::uint32_t depth, start;
};

class Publication : public testing::TestWithParam<publication_case> {};

TEST_P(Publication, NamesWholeEntriesOnceEach)
{
    const publication_case& tried = GetParam();
    std::optional<device> where;
    try {
        where.emplace(device::open(tried.device));
    } catch (const error& refused) {
        GTEST_SKIP() << "missed: entries of kernels on " << tried.device << "; " << refused.what();
    }
    const std::uint32_t rounds = 16000 / (tried.shape.blocks * std::max(tried.shape.lanes, 10u));
    EXPECT_EQ(
        play_publications(*where, publish_in_every_way_kernel, tried.shape, tried.depth, tried.start, rounds, patience),
        "");
}

INSTANTIATE_TEST_SUITE_P(From, Publication,
                         testing::Values(publication_case{"cpu", {1, 1}, 64, 0},
                                         publication_case{"cpu", {3, 5}, 64, 0x10000 - 777},
                                         publication_case{"cpu", {4, 40}, 256, 0u - 777},
                                         publication_case{"cpu", {8, 2}, 64, 1},
                                         publication_case{"opencl", {4, 8}, 64, 0u - 777}),
                         [](const auto& info) {
                             return fmt::format("{}_{}x{}_depth_{}", info.param.device, info.param.shape.blocks,
                                                info.param.shape.lanes, info.param.depth);
                         });

/// One lane plays all roles of the commits of a ring.
class Commits : public testing::Test {
 protected:
    weftio_dev_send_ring ring{};
    weftio_u32 first = 0, second = 0, third = 0;
};

TEST_F(Commits, ArePublishedByTheOneThatIsUnderWay)
{
    ASSERT_TRUE(weftio_dev_send_join_commits(&ring, &first));
    EXPECT_FALSE(weftio_dev_send_join_commits(&ring, &second));
    EXPECT_FALSE(weftio_dev_send_join_commits(&ring, &third));
    ASSERT_TRUE(weftio_dev_send_leave_commits(&ring, 0, 0, &first));
    EXPECT_EQ(first, 2u);
    EXPECT_FALSE(weftio_dev_send_leave_commits(&ring, 1, 1, &first));
    EXPECT_EQ(ring.commits, 0u);
    EXPECT_TRUE(weftio_dev_send_join_commits(&ring, &second)) << "nobody is under way any more";
}

TEST_F(Commits, ChangeThePublisherWhoHasDoneMuch)
{
    ASSERT_TRUE(weftio_dev_send_join_commits(&ring, &first));
    ASSERT_FALSE(weftio_dev_send_join_commits(&ring, &second));
    ASSERT_TRUE(weftio_dev_send_leave_commits(&ring, 1, 4, &first)) << "nobody has taken the offer: he goes on";
    EXPECT_EQ(first, 1u);
    EXPECT_EQ(ring.commits, 1u);
    // The publisher has just offered, and two more come.
    ring.commits |= WEFTIO_DEV_COMMITS_OFFERED;
    ASSERT_TRUE(weftio_dev_send_join_commits(&ring, &third));
    EXPECT_EQ(third, 2u) << "his own, and the one that was left";
    EXPECT_FALSE(weftio_dev_send_join_commits(&ring, &second)) << "the offer is taken";
    weftio_u32 seen = 0;
    EXPECT_FALSE(weftio_dev_send_take_offer(&ring, 1 | WEFTIO_DEV_COMMITS_OFFERED, &seen)) << "for the old one, too";
    ASSERT_TRUE(weftio_dev_send_leave_commits(&ring, 1, 0, &third));
    EXPECT_EQ(third, 1u);
    EXPECT_FALSE(weftio_dev_send_leave_commits(&ring, 1, 1, &third));
    EXPECT_EQ(ring.commits, 0u);
}

/// Reserving, without a kernel: a lane alone is its own block.
class Reserving : public testing::Test {
 protected:
    weftio_s32 reserve(std::uint32_t count, std::uint64_t timeout_ns = 1)
    {
        return weftio_dev_send_queue_reserve(&ring.handle()->queue, WEFTIO_DEV_SCOPE_THREAD, count, timeout_ns, nullptr,
                                             &first);
    }
    void submit(std::uint32_t count)
    {
        for (std::uint32_t at = 0; at < count; ++at)
            ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_weak(ring.handle(), publication_frame(number++), 64, first + at,
                                                           WEFTIO_DEV_SEND_NONE),
                      WEFTIO_DEV_OK);
        weftio_dev_send_queue_submit_reserved(&ring.handle()->queue, WEFTIO_DEV_SCOPE_THREAD, first, count);
    }

    device cpu = device::open("cpu");
    checked_ring ring{cpu, 64, 0u - 9};
    std::vector<std::uint8_t> seen = std::vector<std::uint8_t>(1000);
    std::uint32_t first = 77, number = 0;
};

TEST_F(Reserving, GivesWhatIsFreeAndWaitsForTheRest)
{
    ASSERT_EQ(reserve(60), WEFTIO_DEV_OK);
    EXPECT_EQ(first, 0u - 9);
    submit(60);
    EXPECT_EQ(reserve(5), WEFTIO_DEV_TIMEOUT);
    EXPECT_EQ(first, 0u - 9) << "an error changes nothing";
    ASSERT_EQ(reserve(4), WEFTIO_DEV_OK);
    EXPECT_EQ(first, 51u);
    submit(4);
    EXPECT_EQ(ring.turn(seen), 64u);
    ASSERT_EQ(reserve(64), WEFTIO_DEV_OK);
    submit(64);
    EXPECT_EQ(ring.turn(seen), 64u);
    EXPECT_EQ(ring.wrong(), "");
    EXPECT_TRUE(ring.was_rung());
}

TEST_F(Reserving, RefusesWhatCannotBe)
{
    EXPECT_EQ(reserve(0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(reserve(65), WEFTIO_DEV_INVALID_ARGUMENT);
    weftio_store_relaxed_u32(&ring.control()->abort, 1);
    EXPECT_EQ(reserve(1), WEFTIO_DEV_ABORTED) << "also when positions are free";
    EXPECT_EQ(reserve(64, 0), WEFTIO_DEV_ABORTED);
    weftio_store_relaxed_u32(&ring.control()->abort, 0);
    ASSERT_EQ(reserve(64), WEFTIO_DEV_OK);
    EXPECT_EQ(first, 0u - 9) << "nothing was reserved";
}

/// A commit that waits for its entries, while another commit is under way: the test plays that one, step by step.
class WaitingCommit : public testing::Test {
 protected:
    void SetUp() override { ASSERT_TRUE(weftio_dev_send_join_commits(&handle().ring, &commits)); }

    weftio_dev_send_queue& handle() { return ring.handle()->queue; }
    void enqueue()
    {
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(ring.handle(), publication_frame(number++), 64,
                                                         WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
    }
    weftio_s32 wait(std::uint64_t timeout_ns) { return weftio_dev_send_queue_submit_wait(&handle(), timeout_ns); }

    device cpu = device::open("cpu");
    checked_ring ring{cpu, 64, 0u - 9};
    std::vector<std::uint8_t> seen = std::vector<std::uint8_t>(1000);
    std::uint32_t number = 0;
    weftio_u32 commits = 0;
};

TEST_F(WaitingCommit, IsOverWhenItsOwnEntriesAreDone)
{
    enqueue();
    EXPECT_EQ(wait(1'000'000), WEFTIO_DEV_TIMEOUT) << "nobody has published the entry yet";
    EXPECT_EQ(ring.turn(seen), 0u);
    weftio_s32 status = WEFTIO_DEV_NOT_FOUND;
    std::thread waits([&] { status = wait(static_cast<std::uint64_t>(std::chrono::nanoseconds(patience).count())); });
    // The other one sees that more have come, and publishes for them.
    while (weftio_load_relaxed_u32(&handle().ring.commits) < 3) // the test's, and both waiting ones
        std::this_thread::yield();
    while (weftio_dev_send_leave_commits(&handle().ring, 1, 0, &commits))
        weftio_dev_send_publish(&handle().ring,
                                weftio_dev_send_scan(weftio_dev_send_parts_of(&handle().ring), handle().ring.ready));
    for (std::uint32_t arrived = 0; arrived == 0; std::this_thread::yield())
        arrived = ring.turn(seen);
    waits.join();
    EXPECT_EQ(status, WEFTIO_DEV_OK);
    EXPECT_EQ(ring.wrong(), "");
}

TEST_F(WaitingCommit, PublishesWhatBecameFilledInFrontOfIt)
{
    ASSERT_FALSE(weftio_dev_send_leave_commits(&handle().ring, 1, 0, &commits));
    // Another lane has claimed a position and not filled it, behind it the caller's; it will not commit.
    weftio_dev_send_range claimed;
    ASSERT_EQ(weftio_dev_send_reserve(&handle().ring, 1, &claimed), 1u);
    enqueue();
    EXPECT_EQ(wait(1'000'000), WEFTIO_DEV_TIMEOUT);
    weftio_dev_eth_txq_send_enqueue_weak(ring.handle(), publication_frame(number++), 64, claimed.first,
                                         WEFTIO_DEV_SEND_NONE);
    std::thread fills([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        weftio_dev_send_fill(weftio_dev_send_parts_of(&handle().ring), claimed);
        for (std::uint32_t arrived = 0; arrived < 2; std::this_thread::yield())
            arrived += ring.turn(seen);
    });
    EXPECT_EQ(wait(static_cast<std::uint64_t>(std::chrono::nanoseconds(patience).count())), WEFTIO_DEV_OK);
    fills.join();
    EXPECT_EQ(ring.wrong(), "");
}

/// Whose entries lie behind a gap has left: who fills the gap publishes those as well.
TEST_F(WaitingCommit, GoesOnBehindWhatItFills)
{
    ASSERT_FALSE(weftio_dev_send_leave_commits(&handle().ring, 1, 0, &commits));
    weftio_u32 first = 0;
    ASSERT_EQ(weftio_dev_send_queue_reserve(&handle(), WEFTIO_DEV_SCOPE_THREAD, 2, 1, nullptr, &first), WEFTIO_DEV_OK);
    enqueue();
    ASSERT_EQ(weftio_dev_send_queue_submit(&handle()), WEFTIO_DEV_OK);
    EXPECT_EQ(ring.turn(seen), 0u);
    for (std::uint32_t at = 0; at < 2; ++at)
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_weak(ring.handle(), publication_frame(number++), 64, first + at,
                                                       WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
    weftio_dev_send_queue_submit_reserved(&handle(), WEFTIO_DEV_SCOPE_THREAD, first, 2);
    EXPECT_EQ(ring.turn(seen), 3u);
    EXPECT_EQ(ring.wrong(), "");
}

} // namespace
} // namespace weftio::test
