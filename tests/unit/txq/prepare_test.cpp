// What the NIC makes ready while a wait holds a queue is not sent before its time, and not after it has been taken
// back.
#include <cstring>

#include <gmock/gmock.h>

#include "sending_port.hpp"

namespace weftio::test {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t ms = 1'000'000;

/// A queue behind a wait, of a port that the test runs; frames lie in a region that may go.
class BehindAWait : public testing::Test {
 protected:
    BehindAWait()
    {
        progress.attach(
            queue, {.on_sent = {}, .on_error = [this](const send_failure& failure) { failures.push_back(failure); }});
    }
    /// Holds the queue for `ms_ahead`, with whatever `entries` behind, and lets the NIC get as far as it can.
    void hold(std::uint64_t ms_ahead, const std::vector<entry_words>& entries)
    {
        deadline_ns = utc_now_ns() + ms_ahead * ms;
        raw.append(wait_entry(eth_txq::timestamp(deadline_ns)));
        for (const entry_words& entry : entries)
            raw.append(entry);
        raw.push();
        port.run_dry();
    }
    entry_words good(std::uint32_t number) const
    {
        return send_entry(
            {ethernet_segments(),
             {pointer(60, frames.array().lkey(), reinterpret_cast<std::uint64_t>(frames[number].address))}});
    }
    /// Turns until the host has heard of a failure. Returns what was sent meanwhile.
    std::vector<bytes> run_until_failure()
    {
        std::vector<bytes> sent;
        EXPECT_TRUE(eventually([&] {
            for (bytes& frame : port.send_all())
                sent.push_back(std::move(frame));
            progress.progress();
            return !failures.empty();
        }));
        return sent;
    }

    device cpu = device::open("cpu");
    sending_port port;
    eth_txq queue{port.get(), cpu, {.entries = 64, .horizon_ns = 2 * an_hour_ns}};
    numbered_buffers frames{port.get(), cpu, 64};
    raw_queue raw{queue};
    std::vector<send_failure> failures;
    progress_engine progress;
    std::uint64_t deadline_ns = 0;
};

TEST_F(BehindAWait, FramesInlineAndInMemoryGoAtTheDeadlineUnchanged)
{
    hold(20, {good(1), send_entry({ethernet_segments(), inline_data(numbered(2))}), good(3)});
    std::vector<bytes> sent;
    ASSERT_TRUE(eventually([&] {
        for (bytes& frame : port.send_all())
            sent.push_back(std::move(frame));
        return sent.size() >= 3;
    }));
    EXPECT_GE(utc_now_ns(), deadline_ns);
    EXPECT_EQ(sent, numbered_run(1, 3));
    EXPECT_EQ(queue.counters().sent, 3u);
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(BehindAWait, TheQueueIsNotIdleByItsCountersUntilTheWaitIsOver)
{
    eth_txq patient(port.get(), cpu, {.entries = 64, .horizon_ns = 2 * an_hour_ns});
    raw = raw_queue(patient);
    hold(an_hour_ns / ms, {});
    EXPECT_EQ(patient.counters().enqueued, 1u);
    EXPECT_EQ(patient.counters().waited, 0u);
    EXPECT_FALSE(conserves(patient.counters()));
    patient.reset();
    EXPECT_EQ(patient.counters().flushed, 1u);
    EXPECT_TRUE(conserves(patient.counters()));
    raw = raw_queue(patient);
    hold(20, {});
    ASSERT_TRUE(eventually([&] {
        port.run_dry();
        return patient.counters().waited == 1;
    }));
    EXPECT_GE(utc_now_ns(), deadline_ns);
    EXPECT_EQ(patient.counters().enqueued, 2u);
    EXPECT_TRUE(conserves(patient.counters()));
}

TEST_F(BehindAWait, AFrameWhoseRegionGoesMeanwhileFails)
{
    memory room = cpu.allocate(4096, memory_kind::cpu_device);
    std::optional<memory_region> region(std::in_place, port.get(), room);
    hold(2000, {good(1),
                send_entry({ethernet_segments(),
                            {pointer(60, region->lkey(), reinterpret_cast<std::uint64_t>(room.device_address()))}})});
    region.reset();
    if (utc_now_ns() >= deadline_ns)
        GTEST_SKIP() << "missed: a region that ends before the deadline; this machine stood still for two seconds";
    EXPECT_EQ(run_until_failure(), numbered_run(1, 1));
    EXPECT_EQ(failures.at(0).position, 2u);
    EXPECT_THAT(failures.at(0).text, HasSubstr("no memory region has that key"));
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(BehindAWait, FramesByManyKeysGoInOrder)
{
    const memory room = cpu.allocate(4096, memory_kind::cpu_device);
    std::memcpy(room.cpu_address(), numbered(5).data(), numbered(5).size());
    std::vector<memory_region> regions;
    std::vector<entry_words> entries;
    for (unsigned each = 0; each < 20; ++each) {
        regions.emplace_back(port.get(), room);
        entries.push_back(
            send_entry({ethernet_segments(),
                        {pointer(60, regions.back().lkey(), reinterpret_cast<std::uint64_t>(room.device_address()))}}));
    }
    hold(20, entries);
    std::vector<bytes> sent;
    ASSERT_TRUE(eventually([&] {
        for (bytes& frame : port.send_all())
            sent.push_back(std::move(frame));
        return sent.size() >= 20;
    }));
    EXPECT_GE(utc_now_ns(), deadline_ns);
    EXPECT_EQ(sent, std::vector<bytes>(20, numbered(5)));
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(BehindAWait, AnEntryThatIsRefusedFailsAtTheDeadlineBehindTheOthers)
{
    hold(100, {good(1), send_entry({ethernet_segments(), {pointer(60, WEFTIO_LKEY_INVALID, 0)}}), good(3)});
    bool notified = progress.progress() != 0;
    EXPECT_FALSE(notified && utc_now_ns() < deadline_ns);
    EXPECT_EQ(run_until_failure(), numbered_run(1, 1));
    EXPECT_EQ(failures.at(0).position, 2u);
    EXPECT_GE(failures.at(0).time_ns, deadline_ns);
    EXPECT_EQ(queue.counters().flushed, 1u);
    EXPECT_TRUE(conserves(queue.counters()));
}

TEST_F(BehindAWait, NothingIsSentOnceTheRecordIsWrong)
{
    hold(an_hour_ns / ms, {good(1), good(2)});
    raw.claim(1000);
    EXPECT_TRUE(port.send_all().empty());
    EXPECT_EQ(queue.counters().waited, 0u);
    EXPECT_EQ(queue.counters().flushed, 3u);
    EXPECT_EQ(queue.counters().failed, 1u);
    EXPECT_TRUE(conserves(queue.counters()));
    EXPECT_EQ(weftio_dev_eth_txq_status(raw.handle()), WEFTIO_DEV_QUEUE_ERROR);
}

TEST_F(BehindAWait, EverythingIsFlushedInAReset)
{
    std::vector<entry_words> entries;
    for (std::uint32_t number = 0; number < 40; ++number)
        entries.push_back(good(number));
    hold(an_hour_ns / ms, entries);
    queue.reset();
    EXPECT_EQ(queue.counters().waited, 0u);
    EXPECT_EQ(queue.counters().flushed, 41u);
    EXPECT_TRUE(conserves(queue.counters()));
    raw_queue again(queue);
    again.append(good(50));
    again.push();
    EXPECT_EQ(port.send_all(), numbered_run(50, 1));
}

} // namespace
} // namespace weftio::test
