// Memory that goes away while a DMA engine copies: the queue fails, and everything else goes on.
#include <string>
#include <thread>

#include <gmock/gmock.h>

#include "dma_fixture.hpp"
#include "fleeting_memory.hpp"
#include "nic/soft/dma/soft_dma.hpp"

namespace weftio::test {

namespace {

class GoneMemory : public testing::TestWithParam<leaving> {
 protected:
    static constexpr std::uint64_t part = 64 * nic::soft::copy_work::bytes_of_an_entry;

    GoneMemory()
    {
        progress.attach(queue, {.on_error = [&](const send_failure& failure) { reported.push_back(failure); }});
    }
    void expect_failure(std::uint32_t position)
    {
        EXPECT_TRUE(queue.failed());
        progress.progress();
        ASSERT_EQ(reported.size(), 1u);
        EXPECT_EQ(reported[0].position, position);
        EXPECT_EQ(reported[0].syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
        EXPECT_THAT(reported[0].text, testing::HasSubstr(gone_words));
        const dma_counters counts = queue.counters();
        EXPECT_EQ(counts.failed, 1u);
        EXPECT_EQ(counts.enqueued, counts.copied + counts.failed + counts.flushed);
        // The engine goes on, and so does this queue after a reset.
        for (dma_queue* each : {&neighbor, &queue}) {
            if (each == &queue)
                queue.reset();
            EXPECT_EQ(weftio_dev_dma_memcpy(each->handle(), here.buffer(), 0, here.buffer(), 100, 100, 0),
                      WEFTIO_DEV_OK);
            EXPECT_EQ(weftio_dev_dma_commit_wait(each->handle(), 0), WEFTIO_DEV_OK);
        }
    }
    /// The memory is there for the first entry, and not for the second.
    template <class Enqueue>
    void go_between(Enqueue&& enqueue)
    {
        EXPECT_EQ(enqueue(), WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_OK);
        fleeting.go();
        EXPECT_EQ(enqueue(), WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_dma_commit_wait(queue.handle(), 0), WEFTIO_DEV_QUEUE_ERROR);
        expect_failure(1);
    }

    dma_engine engine{{.mode = engine_mode::inline_worker}};
    device cpu = device::open("cpu");
    fleeting_memory fleeting{GetParam(), 3 * part};
    modelled_memory here{engine, cpu, 3 * part};
    memory adopted = cpu.adopt(fleeting.data(), fleeting.bytes());
    memory_region region{engine, adopted};
    dma_queue queue{engine, cpu}, neighbor{engine, cpu};
    std::vector<send_failure> reported;
    progress_engine progress;
};

std::uint64_t faults_survived(leaving way, unsigned rounds)
{
    const dma_engine engine({.mode = engine_mode::thread});
    const device cpu = device::open("cpu");
    constexpr std::size_t bytes = 65536;
    constexpr unsigned entries = 40; // many turns
    fleeting_memory fleeting(way, bytes);
    const memory adopted = cpu.adopt(fleeting.data(), fleeting.bytes());
    const memory_region region(engine, adopted);
    const modelled_memory here(engine, cpu, bytes);
    dma_queue queue(engine, cpu, {.entries = 64});
    dma_queue neighbor(engine, cpu, {.entries = 64});
    std::minstd_rand random(5);
    std::uint64_t copied = 0;
    for (unsigned round = 0; round < rounds; ++round) {
        for (unsigned entry = 0; entry < entries; ++entry) {
            const bool from = (round + entry) % 3 != 0;
            weftio_dev_dma_memcpy(queue.handle(), from ? region.buffer() : here.buffer(), 0,
                                  from ? here.buffer() : region.buffer(), 0, 60 + 1600 * entry, 0);
        }
        weftio_dev_dma_commit(queue.handle());
        // Before the first entry is read, behind so many and amid the next, or behind the last.
        for (const std::uint64_t wanted = copied + (round % 2 != 0 ? random() % entries : 0);
             queue.counters().copied < wanted;)
            std::this_thread::yield();
        fleeting.go();
        for (dma_counters now{}; now.copied + now.failed + now.flushed != entries * (round + std::uint64_t{1});
             now = queue.counters())
            std::this_thread::yield();
        copied = queue.counters().copied;
        fleeting.come_back();
        EXPECT_EQ(weftio_dev_dma_memcpy(neighbor.handle(), here.buffer(), 0, here.buffer(), 64, 64, 0), WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_dma_commit_wait(neighbor.handle(), 0), WEFTIO_DEV_OK);
        if (queue.failed())
            queue.reset();
    }
    testing::Test::RecordProperty("copied", std::to_string(copied));
    return queue.counters().failed;
}

} // namespace

TEST_P(GoneMemory, AtTheSourceOfACopy)
{
    go_between([&] { return weftio_dev_dma_memcpy(queue.handle(), region.buffer(), 4096, here.buffer(), 0, 1000, 0); });
}

TEST_P(GoneMemory, AtTheDestinationOfACopy)
{
    go_between([&] { return weftio_dev_dma_memcpy(queue.handle(), here.buffer(), 0, region.buffer(), 5000, 64, 0); });
}

TEST_P(GoneMemory, AtBothEndsOfACopy)
{
    go_between([&] { return weftio_dev_dma_memcpy(queue.handle(), region.buffer(), 0, region.buffer(), 20, 8000, 0); });
}

TEST_P(GoneMemory, UnderAFill)
{
    go_between([&] { return weftio_dev_dma_fill(queue.handle(), 0x12345678, region.buffer(), 3, 5000, 0); });
}

TEST_P(GoneMemory, BetweenTwoPartsOfACopy)
{
    auto& soft = dynamic_cast<nic::soft::soft_dma&>(detail::internals::backend(engine));
    weftio_dev_dma_memcpy(queue.handle(), region.buffer(), 0, here.buffer(), 0, 3 * part, 0);
    weftio_dev_dma_memcpy(queue.handle(), here.buffer(), 0, here.buffer(), 100, 100, 0);
    weftio_dev_send_queue_commit_strong(&queue.handle()->queue);
    weftio_dev_send_doorbell(&queue.handle()->queue.ring);
    soft.queues().poll_for_work(true);
    soft.queues().turn(64);
    EXPECT_FALSE(queue.failed());
    fleeting.go();
    soft.queues().turn(64);
    EXPECT_EQ(queue.counters().flushed, 1u);
    expect_failure(0);
}

INSTANTIATE_TEST_SUITE_P(Of, GoneMemory, testing::Values(leaving::unmapped, leaving::truncated), name_of_leaving);

TEST_P(GoneMemory, TenThousandTimesUnderTraffic)
{
    constexpr unsigned rounds = 10000;
    const std::uint64_t failed = faults_survived(GetParam(), rounds);
    RecordProperty("failed", std::to_string(failed));
    EXPECT_GT(failed, rounds / 100) << "it mostly went too late";
}

} // namespace weftio::test
