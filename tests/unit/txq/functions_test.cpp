// The device functions of a send queue, called by a kernel of one lane that the test plays. Nothing happens by itself.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

constexpr std::uint32_t depth = 64;

/// Indices begin here: at 0, and where 16 and 32 bits wrap.
constexpr std::uint32_t starts[] = {0, 0x10000 - 100, 0u - 100};

class SendFunctions : public testing::TestWithParam<std::uint32_t> {
 protected:
    SendFunctions() { start_at(port.get(), queue, GetParam()); }

    weftio_s32 send(std::uint32_t number, std::uint32_t flags = WEFTIO_DEV_SEND_NONE)
    {
        return weftio_dev_eth_txq_send_enqueue_strong(txq, frames[number % 256], 60, flags);
    }
    weftio_s32 send_weak(std::uint32_t number, std::uint32_t position)
    {
        return weftio_dev_eth_txq_send_enqueue_weak(txq, frames[number % 256], 60, position, WEFTIO_DEV_SEND_NONE);
    }
    void commit_and_push()
    {
        EXPECT_EQ(weftio_dev_eth_txq_commit_strong(txq), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(txq);
    }

    device cpu = device::open("cpu");
    sending_port port;
    eth_txq queue{port.get(), cpu, {.entries = depth}};
    numbered_buffers frames{port.get(), cpu, 256};
    weftio_dev_eth_txq* txq = queue.handle();
};

TEST_P(SendFunctions, SendWhatWasEnqueuedInOrder)
{
    for (std::uint32_t round = 0; round < 30; ++round) {
        for (std::uint32_t number = 0; number < 50; ++number)
            ASSERT_EQ(send(number), WEFTIO_DEV_OK);
        commit_and_push();
        ASSERT_EQ(port.send_all(), numbered_run(0, 50));
    }
    EXPECT_EQ(queue.counters().sent, 1500u);
    EXPECT_EQ(queue.counters().sent_bytes, 1500u * 60);
    EXPECT_EQ(queue.counters().copied_bytes, 0u);
    EXPECT_TRUE(conserves(queue.counters()));
}

/// Runs of 1, 2, 3 ... frames from one region, also round the end of the ring.
TEST_P(SendFunctions, SendFromRegionsInTurn)
{
    numbered_buffers others{port.get(), cpu, 256};
    for (std::uint32_t round = 0; round < 30; ++round) {
        for (std::uint32_t number = 0, run = 1, left = 1; number < 50; ++number) {
            weftio_dev_buf frame = run % 2 ? frames[number] : others[number];
            ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, frame, 60, WEFTIO_DEV_SEND_NONE), WEFTIO_DEV_OK);
            if (--left == 0)
                left = ++run;
        }
        commit_and_push();
        ASSERT_EQ(port.send_all(), numbered_run(0, 50));
    }
    EXPECT_EQ(queue.counters().sent, 1500u);
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_P(SendFunctions, SendNothingBeforeTheCommit)
{
    ASSERT_EQ(send(1), WEFTIO_DEV_OK);
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(queue.counters().enqueued, 0u);
    EXPECT_EQ(weftio_dev_eth_txq_commit_strong(txq), WEFTIO_DEV_OK);
    EXPECT_EQ(port.send_all(), numbered_run(1, 1)) << "the record is enough for a queue that is awake";
    weftio_dev_eth_txq_push(txq);
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(queue.counters().enqueued, 1u);
}

TEST_P(SendFunctions, PushOnlyWhatWasCommitted)
{
    ASSERT_EQ(send(1), WEFTIO_DEV_OK);
    weftio_dev_eth_txq_push(txq);
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(queue.counters().enqueued, 0u);
    commit_and_push();
    EXPECT_EQ(port.send_all(), numbered_run(1, 1));
}

TEST_P(SendFunctions, DoNothingWithNothingEnqueued)
{
    for (int round = 0; round < 3; ++round) {
        commit_and_push();
        EXPECT_EQ(weftio_dev_eth_txq_commit_weak(txq, 0), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(txq);
        EXPECT_TRUE(port.send_all().empty());
    }
    std::uint32_t position = 0, mask = 0;
    weftio_dev_eth_txq_get_info(txq, &position, &mask);
    EXPECT_EQ(position, GetParam());
    EXPECT_EQ(mask, depth - 1);
    EXPECT_EQ(queue.counters().enqueued, 0u);
    EXPECT_FALSE(queue.failed());
}

TEST_P(SendFunctions, ReportAFullRingAndOverwriteNothing)
{
    for (std::uint32_t number = 0; number < depth; ++number)
        ASSERT_EQ(send(number), WEFTIO_DEV_OK);
    EXPECT_EQ(send(200), WEFTIO_DEV_FULL);
    commit_and_push();
    port.run_dry();
    EXPECT_EQ(send(201), WEFTIO_DEV_FULL); // the driver holds all of them
    EXPECT_EQ(weftio_dev_eth_txq_wait_time_enqueue_strong(txq, eth_txq::timestamp(utc_now_ns()), 0), WEFTIO_DEV_FULL);
    EXPECT_EQ(weftio_dev_eth_txq_send_inline_enqueue_strong(txq, frames[0].address, 60, 0), WEFTIO_DEV_FULL);
    EXPECT_EQ(weftio_dev_eth_txq_wait_room(txq, 1, 1), WEFTIO_DEV_TIMEOUT);
    rte_pktmbuf_free(port.take_mbuf());
    EXPECT_EQ(weftio_dev_eth_txq_wait_room(txq, 1, 0), WEFTIO_DEV_OK);
    EXPECT_EQ(send(64), WEFTIO_DEV_OK);
    EXPECT_EQ(send(202), WEFTIO_DEV_FULL);
    commit_and_push();
    EXPECT_EQ(port.send_all(), numbered_run(1, depth));
    EXPECT_EQ(queue.counters().sent, depth + 1u);
}

TEST_P(SendFunctions, TakeTwoPositionsForAnInlineFrameOrNone)
{
    for (std::uint32_t number = 0; number < depth - 1; ++number)
        ASSERT_EQ(send(number), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_eth_txq_send_inline_enqueue_strong(txq, frames[63].address, 60, 0), WEFTIO_DEV_FULL);
    EXPECT_EQ(weftio_dev_eth_txq_send_inline_enqueue_strong(txq, frames[63].address, 28, 0), WEFTIO_DEV_OK);
    commit_and_push();
    EXPECT_EQ(port.send_all().size(), depth);
}

TEST_P(SendFunctions, SendInlineFramesOfEverySizeAndPadThem)
{
    for (std::uint32_t round = 0; round < 3; ++round) // sizes meet the end of the ring at all their blocks
        for (std::uint32_t size = 1; size <= WEFTIO_DEV_INLINE_BYTES; ++size) {
            bytes frame = numbered(size, size);
            memory shared = cpu.allocate(128, memory_kind::cpu_device);
            auto* at = static_cast<std::uint8_t*>(shared.cpu_address());
            std::copy(frame.begin(), frame.end(), at);
            ASSERT_EQ(weftio_dev_eth_txq_send_inline_enqueue_strong(txq, at, size, 0), WEFTIO_DEV_OK);
            std::fill_n(at, 128, std::uint8_t{0xee}); // it may be used again at once
            commit_and_push();
            frame.resize(std::max<std::size_t>(frame.size(), 60));
            ASSERT_EQ(port.send_all(), std::vector<bytes>{frame}) << size;
        }
    EXPECT_EQ(queue.counters().sent, 3u * WEFTIO_DEV_INLINE_BYTES);
}

TEST_P(SendFunctions, PadShortFramesWithZerosAndLeaveTheBufferAlone)
{
    numbered_buffers dirty(port.get(), cpu, 64, 128);
    for (std::uint32_t size = 1; size < 64; ++size) {
        ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, dirty[size], size, 0), WEFTIO_DEV_OK);
        commit_and_push();
        bytes expected = numbered(size, 128);
        expected.resize(size);
        expected.resize(std::max(size, 60u));
        ASSERT_EQ(port.send_all(), std::vector<bytes>{expected});
        EXPECT_EQ(bytes(dirty[size].address, dirty[size].address + 128), numbered(size, 128));
    }
}

TEST_P(SendFunctions, SendALongFrameFromWhereItLies)
{
    numbered_buffers long_frames(port.get(), cpu, 1, 1514);
    ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, long_frames[0], 1514, 0), WEFTIO_DEV_OK);
    commit_and_push();
    port.run_dry();
    rte_mbuf* mbuf = port.take_mbuf();
    ASSERT_TRUE(mbuf);
    EXPECT_EQ(rte_pktmbuf_mtod(mbuf, void*), long_frames[0].address);
    EXPECT_EQ(mbuf->pkt_len, 1514u);
    rte_pktmbuf_free(mbuf);
    port.run_dry();
    EXPECT_EQ(queue.counters().copied_bytes, 0u);
}

TEST_P(SendFunctions, RefuseLengthsThatCannotBe)
{
    EXPECT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, frames[0], 0, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, frames[0], 61, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_txq_send_enqueue_weak(txq, frames[0], 0, GetParam(), 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_txq_send_enqueue_weak(txq, frames[0], 61, GetParam(), 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_txq_send_inline_enqueue_strong(txq, frames[0].address, 0, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_txq_send_inline_enqueue_strong(txq, frames[0].address, 93, 0),
              WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_txq_commit_weak(txq, depth + 1), WEFTIO_DEV_INVALID_ARGUMENT);
    EXPECT_EQ(weftio_dev_eth_txq_wait_room(txq, depth + 1, 0), WEFTIO_DEV_INVALID_ARGUMENT);
    commit_and_push();
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(queue.counters().enqueued, 0u);
}

TEST_P(SendFunctions, KnowWhichWeakPositionsTheRingHolds)
{
    for (std::uint32_t ahead : {0u, 1u, depth - 1})
        EXPECT_EQ(send_weak(0, GetParam() + ahead), WEFTIO_DEV_OK) << ahead;
    for (std::uint32_t ahead : {depth, depth + 1, 0x8000u, 0u - depth - 1}) {
        EXPECT_EQ(send_weak(0, GetParam() + ahead), WEFTIO_DEV_INVALID_ARGUMENT) << ahead;
        EXPECT_EQ(weftio_dev_eth_txq_wait_time_enqueue_weak(txq, eth_txq::timestamp(1), GetParam() + ahead, 0),
                  WEFTIO_DEV_INVALID_ARGUMENT);
    }
}

TEST_P(SendFunctions, SendWeakEntriesByPositionFreeRunningAndMasked)
{
    for (bool masked : {false, true})
        for (std::uint32_t round = 0; round < 10; ++round) {
            std::uint32_t position = 0, mask = 0;
            weftio_dev_eth_txq_get_info(txq, &position, &mask);
            for (std::uint32_t number = 40; number-- != 0;) // from the last to the first
                ASSERT_EQ(send_weak(number, masked ? weftio_dev_eth_txq_unmask(txq, (position + number) & mask)
                                                   : position + number),
                          WEFTIO_DEV_OK);
            EXPECT_TRUE(port.send_all().empty());
            EXPECT_EQ(weftio_dev_eth_txq_commit_weak(txq, 40), WEFTIO_DEV_OK);
            weftio_dev_eth_txq_push(txq);
            ASSERT_EQ(port.send_all(), numbered_run(0, 40));
        }
    EXPECT_EQ(queue.counters().sent, 800u);
}

TEST_P(SendFunctions, CommitAsManyWeakEntriesAsAsked)
{
    for (std::uint32_t number = 0; number < 10; ++number)
        ASSERT_EQ(send_weak(number, GetParam() + number), WEFTIO_DEV_OK);
    for (std::uint32_t count : {1u, 4u, 5u}) {
        EXPECT_EQ(weftio_dev_eth_txq_commit_weak(txq, count), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(txq);
        EXPECT_EQ(port.send_all().size(), count);
    }
}

TEST_P(SendFunctions, CompleteOnlyWhatTheDriverGaveBack)
{
    std::uint64_t completed_ns = 7;
    for (std::uint32_t number = 0; number < 3; ++number)
        ASSERT_EQ(send(number), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam(), &completed_ns), WEFTIO_DEV_NOT_FOUND);
    commit_and_push();
    port.run_dry();
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam(), &completed_ns), WEFTIO_DEV_NOT_FOUND);
    EXPECT_EQ(completed_ns, 7u);
    rte_mbuf *first = port.take_mbuf(), *second = port.take_mbuf();
    rte_pktmbuf_free(second); // out of order: it has to wait for the one in front
    port.run_dry();
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam() + 1, &completed_ns), WEFTIO_DEV_NOT_FOUND);
    std::uint64_t before_ns = utc_now_ns();
    rte_pktmbuf_free(first);
    port.run_dry();
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam(), &completed_ns), WEFTIO_DEV_OK);
    EXPECT_GE(completed_ns, before_ns);
    EXPECT_LE(completed_ns, utc_now_ns());
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam() + 1, &completed_ns), WEFTIO_DEV_OK);
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam() + 2, &completed_ns), WEFTIO_DEV_NOT_FOUND);
    EXPECT_EQ(port.take().size(), 1u);
}

TEST_P(SendFunctions, CompleteHoweverTheDriverGivesFramesBack)
{
    for (std::uint32_t number = 0; number < 3; ++number)
        ASSERT_EQ(send(number), WEFTIO_DEV_OK);
    commit_and_push();
    port.run_dry();
    rte_mbuf *sent_twice = port.take_mbuf(), *put_back = port.take_mbuf(), *freed = port.take_mbuf();
    rte_mbuf_refcnt_update(sent_twice, 1); // as a bond that sends on two links
    rte_pktmbuf_free(sent_twice);
    rte_mempool_put(put_back->pool, put_back); // as a driver that looks at no references
    rte_pktmbuf_free(freed);
    port.run_dry();
    EXPECT_EQ(queue.counters().sent, 0u);
    rte_pktmbuf_free(sent_twice);
    port.run_dry();
    EXPECT_EQ(queue.counters().sent, 3u);
    for (std::uint32_t number = 3; number < 6; ++number)
        ASSERT_EQ(send(number), WEFTIO_DEV_OK);
    commit_and_push();
    EXPECT_EQ(port.send_all(), numbered_run(3, 3));
}

TEST_P(SendFunctions, SayAfterAnErrorThatTheQueueIsInError)
{
    weftio_dev_buf wild = frames[0];
    wild.lkey_be = 0;
    std::uint64_t completed_ns = 0;
    ASSERT_EQ(weftio_dev_eth_txq_send_enqueue_strong(txq, wild, 60, 0), WEFTIO_DEV_OK);
    commit_and_push();
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam(), &completed_ns), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_EQ(weftio_dev_eth_txq_wait_room(txq, 1, 0), WEFTIO_DEV_QUEUE_ERROR);
    for (std::uint32_t round = 0; round < 3 * depth; ++round) {
        ASSERT_EQ(send(1), WEFTIO_DEV_OK); // flushed, so that there is always room
        EXPECT_EQ(weftio_dev_eth_txq_commit_strong(txq), WEFTIO_DEV_QUEUE_ERROR);
        weftio_dev_eth_txq_push(txq);
        ASSERT_TRUE(port.send_all().empty());
    }
    EXPECT_EQ(queue.counters().flushed, 3u * depth);
    EXPECT_EQ(weftio_dev_eth_txq_poll_completion(txq, GetParam() + 1, &completed_ns), WEFTIO_DEV_QUEUE_ERROR);
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_P(SendFunctions, EndWithTheAbortFlag)
{
    for (std::uint32_t number = 0; number < depth; ++number)
        ASSERT_EQ(send(number), WEFTIO_DEV_OK);
    weftio_store_relaxed_u32(&queue.control()->abort, 1);
    EXPECT_EQ(weftio_dev_eth_txq_wait_room(txq, 1, 0), WEFTIO_DEV_ABORTED);
    EXPECT_EQ(weftio_dev_eth_txq_commit_strong(txq), WEFTIO_DEV_ABORTED); // published all the same
    weftio_dev_eth_txq_push(txq);
    EXPECT_EQ(port.send_all().size(), depth);
    weftio_store_relaxed_u32(&txq->queue.ring.commits, 1); // somebody else is at it, and ends there
    EXPECT_EQ(weftio_dev_eth_txq_commit_strong(txq), WEFTIO_DEV_ABORTED);
    weftio_dev_eth_txq_push(txq);
}

INSTANTIATE_TEST_SUITE_P(From, SendFunctions, testing::ValuesIn(starts),
                         [](const auto& start) { return fmt::format("{:08x}", start.param); });

TEST(SendTimestamp, MovesOnWithoutADivision)
{
    std::uint64_t value = eth_txq::timestamp(1'700'000'000'999'999'990);
    EXPECT_EQ(weftio_dev_timestamp_add(value, 9), eth_txq::timestamp(1'700'000'000'999'999'999));
    EXPECT_EQ(weftio_dev_timestamp_add(value, 10), eth_txq::timestamp(1'700'000'001'000'000'000));
    EXPECT_EQ(weftio_dev_timestamp_add(value, 999'999'999), eth_txq::timestamp(1'700'000'001'999'999'989));
}

TEST(SendQueue, RefusesWhatCannotBeHonoured)
{
    device cpu = device::open("cpu");
    sending_port port;
    for (std::uint32_t entries : {0u, 1u, 32u, 63u, 65u, 100u, 65536u})
        EXPECT_EQ(error_of([&] { eth_txq(port.get(), cpu, {.entries = entries}); }).code(), errc::invalid_argument)
            << entries;
    error refused = error_of([&] { eth_txq(port.get(), cpu, {.clock = "tai"}); });
    EXPECT_EQ(refused.code(), errc::invalid_argument);
    EXPECT_NE(std::string(refused.what()).find("clock \"tai\" is not the port's clock; this port schedules by \"utc\""),
              std::string::npos);
    EXPECT_EQ(eth_txq(port.get(), cpu, {.entries = 32768}).clock_name(), "utc");
}

} // namespace
} // namespace weftio::test
