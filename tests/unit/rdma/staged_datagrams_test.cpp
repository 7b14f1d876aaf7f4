// Datagrams (UD) from and to memory that the CPU cannot access.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>

#include "datagram_ends.hpp"
#include "software_nic.hpp"
#include "unit/device/hidden_gpu.hpp"

namespace weftio::test {

namespace {

class StagedDatagrams : public testing::Test {
 protected:
    StagedDatagrams() { ends.start(); }
    static segment piece(const hidden_memory& of, std::size_t at, std::uint32_t count)
    {
        return pointer(count, of.lkey(), of.address(at));
    }
    void send_from(const hidden_memory& of, std::size_t at, std::uint32_t count)
    {
        std::vector<segment> body = named(ends.peer(1));
        body.push_back(piece(of, at, count));
        ends.pair(0).post(WEFTIO_OPCODE_SEND, body);
    }
    nic::soft::staged_stream& stream_of(const hidden_memory& of, unsigned end)
    {
        return *software_nic(ends.at(end)).rdma(0).staged().find(of.gpu.get());
    }

    datagram_ends ends{false};
    hidden_memory ours{ends.at(0), 1 << 16, access::local_write}, theirs{ends.at(1), 1 << 16, access::local_write};
};

TEST_F(StagedDatagrams, AreLostWhereThereIsNoMemoryForTheirCopies)
{
    std::vector<nic::soft::staging_block> all;
    while (auto more = stream_of(theirs, 1).to_device.take(1, nic::soft::staging_blocks::most_bytes))
        all.push_back(std::move(more));
    ends.pair(1).post_receive(piece(theirs, 0, 4096));
    ends.send_to(ends.peer(1), 500);
    EXPECT_EQ(ends.poll(1).size(), 0u);
    EXPECT_EQ(ends.pair(1)->counters().ignored, 1u);
    EXPECT_EQ(ends.pair(1)->state(), rdma_state::ready_to_send);
    all.clear();
    ends.send_to(ends.peer(1), 500); // the receive is there still
    const std::vector<completion> came = ends.poll(1);
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0].bytes, 540u);
}

/// Those in flight when the memory goes, too.
TEST_F(StagedDatagrams, CompleteAllOfThemWhenACopyIsRefused)
{
    ours.copies().holds = true;
    send_from(ours, 0, 100);
    ends.run();
    ours.copies().refuses = true;
    send_from(ours, 8192, 100);
    ends.run();
    send_from(ours, 16384, 100);
    ends.run();
    ours.copies().let_go();
    ends.run();
    const std::vector<completion> sent = ends.poll(0);
    ASSERT_EQ(sent.size(), 3u);
    EXPECT_EQ(sent[0].syndrome, 0);
    EXPECT_NE(sent[1].syndrome, 0);
    EXPECT_NE(sent[2].syndrome, 0);
    EXPECT_EQ(ends.pair(0)->state(), rdma_state::send_queue_error);
}

} // namespace

} // namespace weftio::test
