// What counters of a queue pair say while something is in flight.
#include <gtest/gtest.h>

#include "posted_ends.hpp"
#include "two_ends.hpp"

namespace weftio::test {

namespace {

TEST(RdmaCounters, CountAnEntryAsEnqueuedOnceItIsTakenUp)
{
    two_ends ends(false);
    ends.connect();
    ends.queue(0).post(WEFTIO_OPCODE_RDMA_WRITE, {ends.memory(1).remote_at(0), ends.memory(0).local(0, 8)});
    ends.queue(0).push();
    ends.at(0).turn();
    EXPECT_EQ(ends.queue(0).nic().counters().enqueued, 1u);
    EXPECT_EQ(ends.queue(0).nic().counters().done, 0u);
    ends.run();
    EXPECT_EQ(ends.queue(0).nic().counters().enqueued, 1u);
    EXPECT_EQ(ends.queue(0).nic().counters().done, 1u);
}

TEST(RdmaPortCounters, AreEqualAtBothEndsAndKeepWhatDestroyedQueuePairsHaveDone)
{
    for (const bool one_port : {false, true}) {
        verbs_ends ends({.one_port = one_port});
        ends.connect();
        for (unsigned each = 0; each < 3; ++each)
            ends.write(0, 5000);
        EXPECT_EQ(ends.poll(0).size(), 3u);
        for (const bool destroyed : {false, true}) {
            const rdma_port_counters first = ends.devices[0]->counters(), second = ends.devices[1]->counters();
            EXPECT_GE(first.sent_bytes, 15000u);
            EXPECT_EQ(first.sent, second.received);
            EXPECT_EQ(first.sent_bytes, second.received_bytes);
            EXPECT_EQ(first.received, second.sent);
            EXPECT_EQ(first.received_bytes, second.sent_bytes);
            EXPECT_EQ(first.damaged + first.lost + first.congestion, 0u);
            EXPECT_EQ(first.queues.done, 3u);
            EXPECT_EQ(first.queues.done_bytes, 15000u);
            if (!destroyed)
                ends.pairs[0].reset();
        }
    }
}

} // namespace

} // namespace weftio::test
