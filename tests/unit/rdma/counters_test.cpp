// What counters of a queue pair say while something is in flight.
#include <gtest/gtest.h>

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

} // namespace

} // namespace weftio::test
