// Queue pairs and IDs that a peer uses anew, before and after their connection has ended.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace cm_ends;

/// The next 1,000 from the same queue pair while the old ones rest: none is stale.
TEST(CmStale, ReconnectsAtOnceFromTheSameQueuePair)
{
    both ends;
    for (int round = 0; round < 1000; ++round) {
        ends.until_established();
        ends.client.under_test.disconnect(ends.client_id, {}, ends.now);
        carry(ends.client, ends.server, ends.now);
        EXPECT_EQ(ends.client.told().kind, event_kind::disconnected);
        EXPECT_EQ(ends.server.told().kind, event_kind::disconnected);
        if (round % 100 == 99) {
            for (end* one : {&ends.client, &ends.server}) {
                one->under_test.expire(ends.now + 1000 * ms);
                while (one->under_test.next_event()) {
                }
            }
            ends.now += 2000 * ms;
        }
    }
}

/// The client has died and a new one comes with its queue number: the old connection ends, and the next try is served.
TEST(CmStale, StaleConnectionEndsAndIsReplaced)
{
    both ends;
    ends.until_established();
    const std::uint32_t old = ends.server_id;
    end reborn(1, usual(99));
    std::uint32_t id = 0;
    reborn.under_test.connect(reborn.to(ends.server), usual_req(0x11), ends.now, id);
    carry(reborn, ends.server, ends.now);
    const event rejected = reborn.told();
    EXPECT_EQ(rejected.kind, event_kind::rejected);
    EXPECT_EQ(std::get<rej>(rejected.body).reason, reject_reason::stale_connection);
    const event ended = ends.server.told();
    EXPECT_EQ(ended.kind, event_kind::disconnected);
    EXPECT_EQ(ended.id, old);
    EXPECT_EQ(ends.server.under_test.state_of(old), state::time_wait); // the new client has answered the DREQ
    EXPECT_TRUE(ends.server.silent());
    reborn.under_test.connect(reborn.to(ends.server), usual_req(0x11), ends.now, id);
    carry(reborn, ends.server, ends.now);
    EXPECT_EQ(ends.server.told().kind, event_kind::connect_request);
}

TEST(CmStale, ReplyOfAQueuePairThatIsConnectedIsStale)
{
    both ends;
    ends.until_established();
    std::uint32_t id = 0;
    ends.client.under_test.connect(ends.client.to(ends.server), usual_req(0x12), ends.now, id);
    const mad request = ends.client.take_sent();
    ends.client.receive(ends.server, {request.transaction, rep{.local_id = 5, .remote_id = id, .queue = 0x111}},
                        ends.now);
    EXPECT_EQ(ends.client.take<dreq>().remote_queue, 0x111u);
    const rej stale = ends.client.take<rej>();
    EXPECT_EQ(stale.reason, reject_reason::stale_connection);
    EXPECT_EQ(stale.what, about::rep);
    EXPECT_EQ(ends.client.told().kind, event_kind::disconnected);
    const event rejected = ends.client.told();
    EXPECT_EQ(rejected.kind, event_kind::rejected);
    EXPECT_EQ(rejected.id, id);
}

TEST(CmStale, IdOfAnotherConnectionIsRejected)
{
    both ends;
    ends.until_established();
    req other = usual_req(0x77);
    other.local_id = ends.client_id;
    ends.server.receive(ends.client, {0x1234, other}, ends.now);
    EXPECT_EQ(ends.server.take<rej>().reason, reject_reason::duplicate_communication_id);
    ends.client.under_test.disconnect(ends.client_id, {}, ends.now);
    carry(ends.client, ends.server, ends.now);
    ends.server.told();
    ends.server.receive(ends.client, {0x1234, other}, ends.now); // while the old one rests
    EXPECT_EQ(ends.server.told().kind, event_kind::time_wait_over);
    EXPECT_EQ(ends.server.told().kind, event_kind::connect_request);
}

} // namespace
