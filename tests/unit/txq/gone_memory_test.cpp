// Frames in memory that goes away before it is read: the queue fails, and everything else goes on.
#include <gmock/gmock.h>

#include "fleeting_memory.hpp"
#include "sending_port.hpp"
#include "software_nic.hpp"

namespace weftio::test {
namespace {

class GoneFrames : public testing::TestWithParam<leaving> {
 protected:
    GoneFrames()
    {
        progress.attach(queue, {.on_error = [&](const send_failure& failure) { failures.push_back(failure); }});
        for (unsigned at = 0; at < 16; ++at) {
            const bytes frame = numbered(at, 1500);
            std::copy(frame.begin(), frame.end(), fleeting.data() + at * std::size_t{4096});
        }
    }
    segment piece(std::size_t at, std::uint32_t count) const
    {
        return pointer(count, region.lkey(), reinterpret_cast<std::uint64_t>(region.device_address()) + at);
    }
    /// Sends an entry with the memory, and one without.
    void expect_failure(const entry_words& entry)
    {
        raw.append(entry);
        raw.push();
        EXPECT_EQ(port.send_all().size(), 1u);
        const std::uint32_t position = raw.append(entry);
        raw.append(entry);
        fleeting.go();
        raw.push();
        EXPECT_EQ(port.send_all(), std::vector<bytes>{});
        expect_reported(position, raw.next() - position - 1); // what was flushed counts by its blocks
    }
    void expect_reported(std::uint32_t position, std::uint64_t flushed)
    {
        EXPECT_TRUE(queue.failed());
        progress.progress();
        ASSERT_EQ(failures.size(), 1u);
        EXPECT_EQ(failures[0].position, position);
        EXPECT_EQ(failures[0].syndrome, WEFTIO_SYNDROME_LOCAL_PROTECTION);
        EXPECT_THAT(failures[0].text, testing::HasSubstr(gone_words));
        EXPECT_EQ(queue.counters().failed, 1u);
        EXPECT_EQ(queue.counters().flushed, flushed);
        EXPECT_TRUE(conserves(queue.counters()));
        EXPECT_EQ(rte_mempool_full(software_copies()), 1) << "the copy has not been given back";
        EXPECT_EQ(weftio_dev_eth_txq_send_enqueue_strong(neighbor.handle(), frames[7], 60, 0), WEFTIO_DEV_OK);
        EXPECT_EQ(weftio_dev_eth_txq_commit_strong(neighbor.handle()), WEFTIO_DEV_OK);
        weftio_dev_eth_txq_push(neighbor.handle());
        EXPECT_EQ(port.send_all(), numbered_run(7, 1));
    }
    rte_mempool* software_copies() const { return software_nic(port.get()).device().port_queues().front().copies; }

    device cpu = device::open("cpu");
    sending_port port;
    fleeting_memory fleeting{GetParam()};
    memory adopted = cpu.adopt(fleeting.data(), fleeting.bytes());
    memory_region region{port.get(), adopted};
    eth_txq queue{port.get(), cpu, {.entries = 64}}, neighbor{port.get(), cpu, {.entries = 64}};
    numbered_buffers frames{port.get(), cpu, 64};
    raw_queue raw{queue};
    std::vector<send_failure> failures;
    progress_engine progress;
};

TEST_P(GoneFrames, OfOnePieceFailTheQueue)
{
    expect_failure(send_entry({ethernet_segments(), {piece(0, 1500)}}));
}

TEST_P(GoneFrames, ThatAreSmallFailTheQueue)
{
    expect_failure(send_entry({ethernet_segments(), {piece(100, 64)}}));
}

TEST_P(GoneFrames, OfPiecesFailTheQueue)
{
    expect_failure(send_entry({ethernet_segments(bytes(14, 1)), {piece(0, 100), piece(8192, 900)}}));
}

TEST_P(GoneFrames, WithChecksumsFailTheQueue)
{
    expect_failure(
        send_entry({ethernet_segments({}, WEFTIO_ETH_L3_CHECKSUM | WEFTIO_ETH_L4_CHECKSUM), {piece(0, 1400)}}));
}

/// Whether they are too long is written in their tags.
TEST_P(GoneFrames, ThatAreLongAreTooLong)
{
    raw.append(send_entry({ethernet_segments(), {piece(0, 1516)}}));
    fleeting.go();
    raw.push();
    EXPECT_TRUE(port.send_all().empty());
    progress.progress();
    ASSERT_EQ(failures.size(), 1u);
    EXPECT_EQ(failures[0].syndrome, WEFTIO_SYNDROME_LOCAL_LENGTH);
}

/// A frame behind a wait is copied ahead; one that cannot be fails when its turn comes, and not before.
TEST_P(GoneFrames, BehindAWaitFailWhenTheirTurnComes)
{
    const std::uint64_t due_ns = utc_now_ns() + 20'000'000;
    raw.append(wait_entry(eth_txq::timestamp(due_ns)));
    raw.append(send_entry({ethernet_segments(), {piece(0, 1500)}}));
    fleeting.go();
    raw.push();
    const bool failed = queue.failed();
    EXPECT_TRUE(!failed || utc_now_ns() >= due_ns); // this thread may have waited for a core
    EXPECT_TRUE(eventually([&] { return port.send_all().empty() && queue.failed(); }));
    expect_reported(1, 0);
}

/// A driver reads a frame that is lent by the CPU, and would die: what is adopted is copied.
TEST_P(GoneFrames, AreNotLentToADriverThatCopiesThem)
{
    raw.append(send_entry({ethernet_segments(), {piece(4096, 1500)}}));
    raw.push();
    port.run_dry();
    fleeting.go();
    EXPECT_EQ(port.take(), numbered_run(1, 1, 1500));
    EXPECT_EQ(queue.counters().copied_bytes, 1500u);
    EXPECT_FALSE(queue.failed());
}

INSTANTIATE_TEST_SUITE_P(Are, GoneFrames, testing::Values(leaving::unmapped, leaving::truncated), name_of_leaving);

} // namespace
} // namespace weftio::test
