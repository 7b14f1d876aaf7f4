// Hosts that are no more: whoever knows it tells the manager.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace cm_ends;

constexpr unsigned client_number = 1, server_number = 2;

TEST(CmLostPeer, EndsAConnectionAsIfItHadDisconnected)
{
    both ends;
    ends.until_established();
    ends.server.under_test.lose(address(client_number), ends.now);
    EXPECT_EQ(ends.server.told().kind, event_kind::disconnected);
    EXPECT_EQ(ends.server_state(), state::time_wait);
    EXPECT_TRUE(ends.server.silent()) << "nobody is there to hear";
    ends.server.under_test.expire(ends.now + 200 * ms);
    EXPECT_EQ(ends.server.told().kind, event_kind::time_wait_over);
}

TEST(CmLostPeer, IsNotTheOther)
{
    both ends;
    ends.until_established();
    EXPECT_EQ(ends.server.under_test.peers(), std::set{address(client_number)});
    ends.server.under_test.lose(address(server_number), ends.now);
    EXPECT_TRUE(ends.server.silent());
    EXPECT_EQ(ends.server_state(), state::established);
}

TEST(CmLostPeer, AnswersNoRequest)
{
    both ends;
    ends.client.under_test.connect(ends.client.to(ends.server), usual_req(0x11), ends.now, ends.client_id);
    ends.client.under_test.lose(address(server_number), ends.now);
    const event told = ends.client.told();
    EXPECT_EQ(told.kind, event_kind::unreachable);
    EXPECT_TRUE(told.gone);
    EXPECT_EQ(ends.client_state(), std::nullopt);
    EXPECT_TRUE(ends.client.under_test.peers().empty());
    EXPECT_EQ(ends.client.under_test.next_deadline(), 0u);
}

TEST(CmLostPeer, AnswersNoReply)
{
    both ends;
    ends.until_reply();
    ends.server.under_test.lose(address(client_number), ends.now);
    EXPECT_EQ(ends.server.told().kind, event_kind::unreachable);
    EXPECT_EQ(ends.server_state(), std::nullopt);
}

TEST(CmLostPeer, CannotBeAccepted)
{
    both ends;
    ends.client.under_test.connect(ends.client.to(ends.server), usual_req(0x11), ends.now, ends.client_id);
    carry(ends.client, ends.server, ends.now);
    const event request = ends.server.told();
    ends.server.under_test.lose(address(client_number), ends.now);
    EXPECT_EQ(ends.server.told().kind, event_kind::rejected);
    EXPECT_EQ(ends.server.under_test.accept(request.id, {.queue = 0x111}, ends.now), refusal::unknown_connection);
}

TEST(CmLostPeer, EndsADisconnect)
{
    both ends;
    ends.until_established();
    ends.client.under_test.disconnect(ends.client_id, {}, ends.now);
    ends.client.out.sent.clear();
    ends.client.under_test.lose(address(server_number), ends.now);
    EXPECT_EQ(ends.client.told().kind, event_kind::disconnected);
    EXPECT_EQ(ends.client_state(), state::time_wait);
    ends.client.under_test.lose(address(server_number), ends.now);
    EXPECT_TRUE(ends.client.silent()) << "told once";
}

TEST(CmLostPeer, AnswersNoResolution)
{
    both ends;
    std::uint32_t id = 0;
    ends.client.under_test.resolve(ends.client.to(ends.server), {.service = 5}, 14, 2, ends.now, id);
    ends.client.under_test.lose(address(server_number), ends.now);
    EXPECT_EQ(ends.client.told().kind, event_kind::unreachable);
    EXPECT_EQ(ends.client.under_test.size(), 0u);
}

} // namespace
