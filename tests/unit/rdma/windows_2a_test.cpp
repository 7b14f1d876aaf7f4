// Queue pairs with windows of type 2A: they cannot be destroyed as long as the windows are bound.
#include <cstring>
#include <memory>

#include <gmock/gmock.h>

#include "posted_ends.hpp"
#include "unit/txq/log_lines.hpp"
#include "weftio/error.hpp"
#include "window_entry.hpp"

namespace weftio::test {

namespace {

/// A queue pair lends parts of a region, another accesses them.
class RdmaWindows2A : public testing::TestWithParam<place_of_ends> {
 protected:
    static constexpr std::size_t window_bytes = 1000, apart = 4096;
    static constexpr std::uint64_t long_ns = 10'000'000'000;

    RdmaWindows2A() : lender(std::in_place, device_with(true), where, rdma_queue_options{.timeout = 18})
    {
        for (auto& each : windows)
            each.emplace(device_with(true), window_type::type_2);
        connect();
    }
    static rdma_device_options options(const char* address, bool of_type_2a)
    {
        return {.address = address,
                .application_turns = GetParam().mode != engine_mode::thread,
                .windows_of_type_2a = of_type_2a};
    }
    const rdma_device& device_with(bool of_type_2a) { return of_type_2a ? two_a : two_b; }
    void connect()
    {
        accesses.reset();
        accesses.connect(lender->address());
        lender->connect(accesses.address());
    }
    std::int32_t run(const rdma_queue& queue, const weftio_dev_rdma_request& request)
    {
        EXPECT_EQ(weftio_dev_rdma_enqueue(queue.handle(), request, 0), WEFTIO_DEV_OK);
        return weftio_dev_rdma_commit_wait(queue.handle(), long_ns);
    }
    std::uint32_t lend(unsigned which)
    {
        const std::uint32_t rkey = windows[which]->rkey(), next = weftio_dev_rdma_next_rkey(rkey);
        EXPECT_EQ(run(*lender, weftio_dev_rdma_bind_request(
                                   rkey, next, WEFTIO_DEV_WINDOW_TYPE_2, lent->region.buffer(), which * apart,
                                   window_bytes, WEFTIO_DEV_RDMA_REMOTE_WRITE | WEFTIO_DEV_RDMA_REMOTE_READ)),
                  WEFTIO_DEV_OK);
        return next;
    }
    std::int32_t take_back(std::uint32_t rkey) { return run(*lender, weftio_dev_rdma_invalidate_request(rkey)); }
    std::int32_t write(unsigned which, std::uint32_t rkey)
    {
        const weftio_dev_remote to{lent->address(which * apart), window_bytes, weftio_swap32(rkey), 0};
        return run(accesses, weftio_dev_rdma_write_request(to, 0, own.region.buffer(), 0, 8));
    }
    void give_back(std::uint32_t rkey)
    {
        weftio_dev_rdma_recv* const receives = lender->receives().handle();
        ASSERT_EQ(weftio_dev_rdma_recv_post(receives, lent->region.buffer(), 3 * apart, 64), WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_rdma_recv_commit(receives), WEFTIO_DEV_OK);
        EXPECT_EQ(run(accesses, weftio_dev_rdma_send_inval_request(own.region.buffer(), 0, 8, rkey)), WEFTIO_DEV_OK);
    }
    void expect_in_use(const char* count)
    {
        const error why = error_of([&] { lender->close(); });
        EXPECT_EQ(why.code(), errc::in_use);
        EXPECT_THAT(why.what(), testing::HasSubstr(count));
        EXPECT_EQ(lender->state(), rdma_state::ready_to_send) << "it is as it was";
    }

    wired_ports ports{GetParam().mode};
    port &here = ports.get(0), &there = ports.get(GetParam().one_port ? 0 : 1);
    device where = device::open("cpu");
    rdma_device at_here{here, options("10.0.0.1", false)}, two_a{there, options("10.0.0.2", true)},
        two_b{there, options("10.0.0.3", false)};
    end_memory own{here, where, 4 * apart, {}};
    std::optional<end_memory> lent{std::in_place, there, where, 4 * apart,
                                   region_options{.rights = access::local_write | access::bind}};
    rdma_queue accesses{at_here, where}; // whose WRITE to nobody fails soon
    std::optional<rdma_queue> lender;
    std::array<std::optional<memory_window>, 3> windows;
};

} // namespace

TEST_P(RdmaWindows2A, KeepTheirQueuePairUntilTheyAreFreed)
{
    const std::uint32_t keys[]{lend(0), lend(1), lend(2)};
    expect_in_use("3 memory windows of type 2A are bound by it; invalidate or destroy them first");
    EXPECT_EQ(write(0, keys[0]), WEFTIO_DEV_OK) << "nothing has changed";
    EXPECT_EQ(take_back(keys[0]), WEFTIO_DEV_OK);
    expect_in_use("2 memory windows of type 2A are");
    give_back(keys[1]);
    expect_in_use("1 memory window of type 2A is bound by it; invalidate or destroy it first");
    EXPECT_EQ(write(2, keys[2]), WEFTIO_DEV_OK);
    windows[2].reset();
    lender->close();
    lender.reset(); // which is as one that was moved from
}

TEST_P(RdmaWindows2A, ThatEndWithTheirRegionKeepNobody)
{
    lend(0);
    lend(1);
    expect_in_use("2 memory windows");
    lent.reset();
    lender->close();
}

TEST_P(RdmaWindows2A, OutliveAResetAndARefusedInvalidation)
{
    const std::uint32_t key = lend(0);
    EXPECT_EQ(take_back(key ^ 1), WEFTIO_DEV_QUEUE_ERROR);
    lender->reset();
    connect();
    expect_in_use("1 memory window");
    EXPECT_EQ(write(0, key), WEFTIO_DEV_OK) << "the next peer of the queue pair may use it";
    EXPECT_EQ(take_back(key), WEFTIO_DEV_OK);
    lender->close();
}

TEST_P(RdmaWindows2A, KeepADestroyedQueuePairWhichTheLogTells)
{
    const log_lines log;
    const std::uint32_t key = lend(0), number = lender->number();
    lend(1);
    const std::weak_ptr<queues::reported_queue> kept = detail::internals::reports(*lender);
    lender.reset();
    EXPECT_THAT(log.lines,
                testing::ElementsAre("weftio: rdma_queue: queue pair " + std::to_string(number) +
                                     ": 2 memory windows of type 2A are bound by it; it is kept, with its memory, "
                                     "until they have been destroyed"));
    EXPECT_FALSE(kept.expired());
    EXPECT_TRUE(windows[0]->standing().bound);
    EXPECT_EQ(lent->region.windows(), 2u);
    EXPECT_NE(write(0, key), WEFTIO_DEV_OK) << "it has been stopped";
    windows[0].reset();
    EXPECT_FALSE(kept.expired());
    windows[1].reset();
    EXPECT_TRUE(kept.expired());
}

TEST_P(RdmaWindows2A, AreOfType2BAtOtherDevices)
{
    const log_lines log;
    lender.emplace(device_with(false), where, rdma_queue_options{.timeout = 18});
    connect();
    const std::uint32_t key = lend(0);
    lender->close();
    EXPECT_TRUE(windows[0]->standing().bound) << "it is dead";
    lender.emplace(device_with(false), where, rdma_queue_options{.timeout = 18});
    connect();
    EXPECT_EQ(write(0, key), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_THAT(log.lines, testing::IsEmpty());
}

/// A queue pair with the rules of verbs, which is its own peer.
TEST_P(RdmaWindows2A, KeepAQueuePairOfVerbs)
{
    const log_lines log;
    completion_queue done(there, where, {.entries = 64});
    std::optional<posted_pair> pair(std::in_place, two_a, where, done, done);
    (*pair)->connect((*pair)->address());
    const std::weak_ptr<queues::reported_queue> kept = detail::internals::reports(**pair);
    const auto completes = [&](const std::vector<segment>& body) {
        pair->post(WEFTIO_OPCODE_UMR, body, WEFTIO_CE_ALWAYS, windows[0]->rkey());
        std::array<completion, 1> one;
        ASSERT_TRUE(eventually([&] {
            if (GetParam().mode != engine_mode::thread)
                there.turn();
            return done.poll(one) == 1;
        }));
        EXPECT_EQ(one[0].syndrome, 0u);
    };
    const std::vector<segment> bind = bind_segments({.next = 1,
                                                     .region = lent->region.lkey(),
                                                     .address = lent->address(),
                                                     .bytes = 64,
                                                     .type = window_type::type_2,
                                                     .queue = (*pair)->number()});
    completes(bind);
    EXPECT_THAT(error_of([&] { (*pair)->close(); }).what(),
                testing::AllOf(testing::HasSubstr("queue_pair: close: queue pair " + std::to_string((*pair)->number())),
                               testing::HasSubstr("1 memory window of type 2A is bound")));
    completes(invalidate_segments(0));
    (*pair)->close();
    EXPECT_TRUE(kept.expired());
    pair.emplace(two_a, where, done, done);
    (*pair)->connect((*pair)->address());
    const std::weak_ptr<queues::reported_queue> next = detail::internals::reports(**pair);
    std::vector<segment> again = bind;
    again[3].words[1] = (*pair)->number() << 8 | 2;
    completes(again);
    EXPECT_THAT(log.lines, testing::IsEmpty());
    pair.reset();
    EXPECT_EQ(log.lines.size(), 1u);
    EXPECT_FALSE(next.expired());
    windows[0].reset();
    EXPECT_TRUE(next.expired());
}

INSTANTIATE_TEST_SUITE_P(On, RdmaWindows2A, testing::ValuesIn(places_of_ends),
                         [](const auto& of) { return name_of(of.param); });

} // namespace weftio::test
