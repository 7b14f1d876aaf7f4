// Many send queues of which few have something to do: the engine polls the doorbells of the others, and some of their
// doorbell records, a few at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "nic/soft/work/work_list.hpp"
#include "software_nic.hpp"
#include "unit/txq/sending_port.hpp"

namespace weftio::test {

namespace {

using nic::soft::work_list;

class IdleQueues : public testing::Test {
 protected:
    static constexpr std::uint32_t queues = 200;

    IdleQueues()
    {
        for (std::uint32_t number = 0; number < queues; ++number)
            queues_.emplace_back(port_.get(), cpu_, eth_txq_options{.entries = 64, .horizon_ns = 2 * an_hour_ns});
        fall_asleep();
    }

    void fall_asleep()
    {
        port_.run_dry();
        for (std::uint32_t turn = 0; turn <= work_list::turns_awake; ++turn)
            ASSERT_EQ(port_.get().turn(), 0u);
    }
    /// Enqueues and rings; no push, which would run the engine at once.
    void ring(const eth_txq& queue, std::uint32_t number)
    {
        commit(queue, number);
        weftio_dev_send_doorbell(&queue.handle()->queue.ring);
    }
    void commit(const eth_txq& queue, std::uint32_t number)
    {
        weftio_dev_eth_txq* txq = queue.handle();
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, frames_[number], 60, WEFTIO_DEV_SEND_NONE),
                  WEFTIO_DEV_OK);
        ASSERT_EQ(weftio_dev_eth_txq_commit_strong(txq), WEFTIO_DEV_OK);
    }
    /// Its own frame, at that time.
    void send_at(std::uint64_t deadline_ns, std::uint32_t number)
    {
        weftio_dev_eth_txq* txq = queues_[number].handle();
        weftio_dev_eth_txq_wait_time_enqueue_strong(txq, eth_txq::timestamp(deadline_ns), WEFTIO_DEV_SEND_NONE);
        ring(queues_[number], number);
        weftio_dev_eth_txq_push(txq);
    }
    /// Until each record has been looked at, and the driver is done.
    std::vector<bytes> poll_all()
    {
        for (std::uint32_t turn = 0; turn < queues * work_list::busy_turns_per_commit_poll; ++turn)
            port_.get().turn();
        auto taken = port_.take();
        port_.get().turn();
        return taken;
    }

    sending_port port_;
    device cpu_ = device::open("cpu");
    numbered_buffers frames_{port_.get(), cpu_, queues};
    std::vector<eth_txq> queues_;
};

} // namespace

TEST_F(IdleQueues, ThatCommitWithoutAPushAreNotAllFoundInATurn)
{
    for (std::uint32_t number = 0; number < queues; ++number)
        commit(queues_[number], number);
    EXPECT_EQ(port_.get().turn(), work_list::polls_when_idle);
    EXPECT_LE(port_.get().turn(), 1U);
    EXPECT_EQ(poll_all().size(), queues);
}

TEST_F(IdleQueues, AreAllHeardByAnIdleEngineInATurn)
{
    for (std::uint32_t number = 0; number < queues; ++number)
        ring(queues_[number], number);
    EXPECT_EQ(port_.get().turn(), queues);
    EXPECT_EQ(port_.take().size(), queues);
}

/// As device code does that rings before it writes the record, and then rings the same value again.
TEST_F(IdleQueues, WakeByTheirRecordAndNotByTheirDoorbell)
{
    weftio_dev_send_ring& ring = queues_[7].handle()->queue.ring;
    ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(queues_[7].handle(), frames_[7], 60, WEFTIO_DEV_SEND_NONE),
              WEFTIO_DEV_OK);
    weftio_store_doorbell_u64(ring.doorbell, 1234);
    fall_asleep();
    EXPECT_TRUE(poll_all().empty()) << "no record names an entry";
    weftio_store_release_sys_u32(ring.dbrec, weftio_swap32(1));
    weftio_store_doorbell_u64(ring.doorbell, 1234);
    EXPECT_EQ(poll_all().size(), 1u);
}

TEST_F(IdleQueues, AreAllHeardInTheEnd)
{
    for (std::uint32_t round = 0; round < 3; ++round) {
        for (std::uint32_t number = 0; number < queues; ++number)
            ring(queues_[number], number);
        EXPECT_EQ(poll_all().size(), queues);
        for (const eth_txq& queue : queues_)
            EXPECT_EQ(queue.counters().sent, round + 1);
        fall_asleep();
    }
}

TEST_F(IdleQueues, AreHeardAtOnceWhenPushedInInlineMode)
{
    for (std::uint32_t number : {0u, 77u, queues - 1}) {
        ring(queues_[number], number);
        weftio_dev_eth_txq_push(queues_[number].handle());
        EXPECT_EQ(port_.take(), numbered_run(number, 1));
    }
}

TEST_F(IdleQueues, KeepTheirDeadlinesInTheirSleep)
{
    const std::uint64_t hour_later_ns = utc_now_ns() + an_hour_ns;
    send_at(hour_later_ns, 5);
    fall_asleep();
    EXPECT_EQ(software_nic(port_.get()).sender().deadline_ns(), hour_later_ns);
    const std::uint64_t near_ns = utc_now_ns() + 20'000'000;
    send_at(near_ns, 6);
    for (std::uint32_t turn = 0; turn <= work_list::turns_awake || utc_now_ns() < near_ns; ++turn)
        port_.get().turn();
    port_.get().turn();
    EXPECT_EQ(port_.take(), numbered_run(6, 1));
}

TEST_F(IdleQueues, AreHeardInTheirSleepBehindAWait)
{
    const std::uint64_t deadline_ns = utc_now_ns() + an_hour_ns;
    weftio_dev_eth_txq* txq = queues_[5].handle();
    weftio_dev_eth_txq_wait_time_enqueue_strong(txq, eth_txq::timestamp(deadline_ns), WEFTIO_DEV_SEND_NONE);
    weftio_dev_eth_txq_commit_strong(txq);
    weftio_dev_eth_txq_push(txq);
    fall_asleep();
    ring(queues_[5], 5);
    EXPECT_TRUE(poll_all().empty());
    EXPECT_GT(software_nic(port_.get()).sender().queue(queues_[5].number()).prepared(), 0u);
}

/// The turns of an engine that always has something else to send, until a frame of the queue is on the wire.
TEST_F(IdleQueues, AreHeardWithin8BusyTurns)
{
    static_assert(nic::soft::doorbell_watch::busy_turns_of_a_round == 8);
    std::vector<eth_txq> more;
    while (queues + more.size() < 4097)
        more.emplace_back(port_.get(), cpu_, eth_txq_options{.entries = 64});
    fall_asleep();
    const eth_txq& busy = more.back();
    std::vector<unsigned> turns_until_heard;
    for (std::size_t at = 0; at < queues + more.size() - 1; at += 5) {
        const eth_txq& queue = at < queues ? queues_[at] : more[at - queues];
        const std::uint64_t sent = queue.counters().enqueued;
        ring(busy, 0);
        port_.get().turn(); // busy from here on
        ring(queue, 1);
        unsigned turns = 0;
        for (; queue.counters().enqueued == sent && turns < 5000; ++turns) {
            ring(busy, 0);
            port_.get().turn();
        }
        turns_until_heard.push_back(turns);
        port_.take();
    }
    EXPECT_LE(*std::ranges::max_element(turns_until_heard), 8u);
    EXPECT_GT(*std::ranges::max_element(turns_until_heard), 1u) << "a busy turn does not poll all of them";
}

TEST_F(IdleQueues, ComeAndGoInTheirSleep)
{
    queues_.erase(queues_.begin(), queues_.begin() + 50);
    queues_[3].reset();
    ring(queues_[3], 0);
    ring(queues_.back(), 1);
    EXPECT_EQ(poll_all().size(), 2u);
    fall_asleep();
    queues_.emplace_back(port_.get(), cpu_, eth_txq_options{.entries = 64});
    EXPECT_EQ(queues_.back().number(), 1u);
    ring(queues_.back(), 2);
    EXPECT_EQ(poll_all(), numbered_run(2, 1));
    queues_.clear();
    EXPECT_EQ(port_.get().turn(), 0u);
}

} // namespace weftio::test
