// A client and a server: what is sent, told and repeated, step by step.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace cm_ends;

TEST(CmManager, Connects)
{
    both ends;
    auto& [client, server, listener, client_id, server_id, now] = ends;
    req request = usual_req(0x11);
    request.responder_resources = 4;
    request.data[91] = 7;
    ASSERT_EQ(client.under_test.connect(client.to(server), request, now, client_id), refusal::none);
    carry(client, server, now);
    const event asked = server.told();
    EXPECT_EQ(asked.kind, event_kind::connect_request);
    EXPECT_EQ(asked.listener, listener);
    EXPECT_EQ(asked.route, server.to(client));
    request.local_id = client_id;
    request.guid = usual(1).guid;
    request.primary = {.local_lid = 0xffff, .remote_lid = 0xffff, .local_gid = client.own, .remote_gid = server.own};
    EXPECT_EQ(std::get<req>(asked.body), request);

    rep reply{.queue = 0x22, .first_psn = 5, .responder_resources = 3, .initiator_depth = 2, .rnr_retry_count = 6};
    reply.data[195] = 9;
    ASSERT_EQ(server.under_test.accept(asked.id, reply, now), refusal::none);
    carry(client, server, now);
    const event answered = client.told();
    EXPECT_EQ(answered.kind, event_kind::connect_response);
    reply.local_id = asked.id;
    reply.remote_id = client_id;
    reply.guid = usual(2).guid;
    EXPECT_EQ(std::get<rep>(answered.body), reply);

    rtu last;
    last.data[223] = 3;
    ASSERT_EQ(client.under_test.ready(client_id, last), refusal::none);
    carry(client, server, now);
    const event established = server.told();
    EXPECT_EQ(established.kind, event_kind::established);
    EXPECT_EQ(std::get<rtu>(established.body).data[223], 3);
    EXPECT_EQ(client.under_test.next_deadline(), 0u);
    EXPECT_EQ(server.under_test.next_deadline(), 0u);
}

TEST(CmManager, DisconnectsAndRests)
{
    both ends;
    auto& [client, server, listener, client_id, server_id, now] = ends;
    ends.until_established();
    ASSERT_EQ(server.under_test.disconnect(server_id, {}, now), refusal::none);
    carry(client, server, now);
    for (end* one : {&client, &server}) {
        EXPECT_EQ(one->told().kind, event_kind::disconnected);
        EXPECT_EQ(one->under_test.size(), 1u);
        EXPECT_EQ(one->under_test.next_deadline(), now + 100 * ms + 1);
        one->under_test.expire(now + 100 * ms);
        EXPECT_TRUE(one->silent());
        one->under_test.expire(now + 100 * ms + 1);
        const event over = one->told();
        EXPECT_EQ(over.kind, event_kind::time_wait_over);
        EXPECT_TRUE(over.gone);
        EXPECT_EQ(one->under_test.size(), 0u);
        EXPECT_TRUE(one->silent());
    }
}

TEST(CmManager, RepeatsTheSameRequestAndGivesUp)
{
    both ends;
    auto& [client, server, listener, client_id, server_id, now] = ends;
    client.under_test.connect(client.to(server), usual_req(0x11), now, client_id);
    const mad first = client.take_sent();
    for (int repeat = 0; repeat < 3; ++repeat) {
        EXPECT_EQ(client.under_test.next_deadline(), now + usual_wait);
        client.under_test.expire(now + usual_wait - 1);
        EXPECT_TRUE(client.silent());
        now += usual_wait;
        client.under_test.expire(now);
        EXPECT_EQ(client.take_sent(), first);
    }
    now += usual_wait;
    client.under_test.expire(now);
    const rej given_up = client.take<rej>();
    EXPECT_EQ(given_up.reason, reject_reason::timeout);
    EXPECT_EQ(given_up.local_id, client_id);
    EXPECT_EQ(given_up.remote_id, 0u);
    EXPECT_EQ(given_up.info_bytes, 8); // the GUID
    EXPECT_EQ(given_up.info[0], 0x50);
    EXPECT_EQ(given_up.info[7], 1);
    const event told = client.told();
    EXPECT_EQ(told.kind, event_kind::unreachable);
    EXPECT_TRUE(told.gone);
    EXPECT_EQ(ends.client_state(), state::time_wait);
    client.under_test.expire(now + 200 * ms);
    EXPECT_TRUE(client.silent()) << "it was never connected";
    EXPECT_EQ(client.under_test.size(), 0u);
}

/// For a user who has no room: the next REQ of the peer finds a manager that knows nothing of it.
TEST(CmManager, IgnoredRequestIsAskedAgain)
{
    both ends;
    auto& [client, server, listener, client_id, server_id, now] = ends;
    client.under_test.connect(client.to(server), usual_req(0x11), now, client_id);
    carry(client, server, now);
    server_id = server.told().id;
    EXPECT_EQ(server.under_test.ignore(server_id), refusal::none);
    EXPECT_TRUE(server.silent());
    EXPECT_EQ(server.under_test.size(), 0u);
    client.under_test.expire(now += usual_wait);
    carry(client, server, now);
    server_id = server.told().id;
    EXPECT_EQ(server.under_test.accept(server_id, {.queue = 0x111}, now), refusal::none);
    EXPECT_EQ(server.under_test.ignore(server_id), refusal::wrong_state);
    EXPECT_EQ(server.under_test.ignore(server_id + 1), refusal::unknown_connection);
    carry(client, server, now);
    EXPECT_EQ(client.told().kind, event_kind::connect_response);
}

/// The peer finds the connection by who has given it up: it knows no other ID.
TEST(CmManager, RequestThatIsGivenUpEndsAtThePeer)
{
    both ends;
    auto& [client, server, listener, client_id, server_id, now] = ends;
    client.under_test.connect(client.to(server), usual_req(0x11), now, client_id);
    carry(client, server, now);
    server_id = server.told().id;
    client.under_test.destroy(client_id, now);
    carry(client, server, now);
    const event ended = server.told();
    EXPECT_EQ(ended.kind, event_kind::rejected);
    EXPECT_TRUE(ended.gone);
    EXPECT_EQ(std::get<rej>(ended.body).reason, reject_reason::timeout);
    EXPECT_EQ(server.under_test.size(), 0u);
    EXPECT_EQ(server.under_test.accept(server_id, {.queue = 5}, now), refusal::unknown_connection);
}

TEST(CmManager, RepeatedReplyIsGivenUp)
{
    both ends;
    ends.until_reply();
    const mad first = ends.server.take_sent();
    for (int repeat = 0; repeat < 3; ++repeat) {
        ends.now += usual_wait;
        ends.server.under_test.expire(ends.now);
        EXPECT_EQ(ends.server.take_sent(), first);
    }
    ends.now += usual_wait;
    ends.server.under_test.expire(ends.now);
    EXPECT_EQ(ends.server.take<rej>().reason, reject_reason::timeout);
    EXPECT_EQ(ends.server.told().kind, event_kind::unreachable);
}

TEST(CmManager, PacketStandsForALostRtu)
{
    both ends;
    ends.until_reply();
    carry(ends.client, ends.server, ends.now);
    ends.client.told();
    ends.client.under_test.ready(ends.client_id);
    const mad late = ends.client.take_sent();
    EXPECT_EQ(ends.server.under_test.established(ends.server_id), refusal::none);
    EXPECT_EQ(ends.server.told().kind, event_kind::established);
    EXPECT_EQ(ends.server.under_test.next_deadline(), 0u);
    ends.server.receive(ends.client, late, ends.now);
    EXPECT_TRUE(ends.server.silent());
    EXPECT_EQ(ends.server_state(), state::established);
}

TEST(CmManager, RepeatedReplyBringsTheRtuAgain)
{
    both ends;
    ends.until_reply();
    const auto reply = ends.server.out.sent.front().second;
    carry(ends.client, ends.server, ends.now);
    ends.client.told();
    ends.client.receive(ends.server, {0, rtu{}}, ends.now); // of a stranger
    ends.client.under_test.receive(ends.client.to(ends.server), reply, ends.now);
    EXPECT_EQ(ends.client.take<mra>().what, about::rep); // the user takes its time
    ends.client.under_test.ready(ends.client_id);
    const mad first = ends.client.take_sent();
    ends.client.under_test.receive(ends.client.to(ends.server), reply, ends.now);
    EXPECT_EQ(ends.client.take_sent(), first);
    EXPECT_TRUE(ends.client.silent());
}

TEST(CmManager, DelayMakesThePeerWait)
{
    both ends;
    auto& [client, server, listener, client_id, server_id, now] = ends;
    client.under_test.connect(client.to(server), usual_req(0x11), now, client_id);
    carry(client, server, now);
    server_id = server.told().id;
    EXPECT_EQ(server.under_test.delay(server_id, 20), refusal::none);
    carry(client, server, now);
    EXPECT_EQ(ends.client_state(), state::request_delayed);
    const std::uint64_t until = now + (std::uint64_t{4096} << 20) + usual_wait;
    EXPECT_EQ(client.under_test.next_deadline(), until);
    client.under_test.expire(until - 1);
    EXPECT_TRUE(client.silent());
    client.under_test.expire(until);
    EXPECT_EQ(client.take<rej>().reason, reject_reason::timeout);
    EXPECT_EQ(client.told().kind, event_kind::unreachable);
}

TEST(CmManager, RejectsWithReasonAndPrivateData)
{
    both ends;
    auto& [client, server, listener, client_id, server_id, now] = ends;
    client.under_test.connect(client.to(server), usual_req(0x11), now, client_id);
    const mad request = client.take_sent();
    server.receive(client, request, now);
    server_id = server.told().id;
    rej reason{.reason = reject_reason::consumer_reject};
    reason.data[147] = 5;
    EXPECT_EQ(server.under_test.reject(server_id, reason, now), refusal::none);
    const mad sent = server.take_sent();
    server.receive(client, request, now); // as if the REJ were lost
    EXPECT_EQ(server.take_sent(), sent);
    client.receive(server, sent, now);
    const event rejected = client.told();
    EXPECT_EQ(rejected.kind, event_kind::rejected);
    EXPECT_TRUE(rejected.gone);
    EXPECT_EQ(std::get<rej>(rejected.body).reason, reject_reason::consumer_reject);
    EXPECT_EQ(std::get<rej>(rejected.body).data, reason.data);
    EXPECT_EQ(client.under_test.size(), 0u);
}

TEST(CmManager, ClientMayRejectTheReply)
{
    both ends;
    ends.until_reply();
    carry(ends.client, ends.server, ends.now);
    ends.client.told();
    EXPECT_EQ(ends.client.under_test.reject(ends.client_id, {}, ends.now), refusal::none);
    carry(ends.client, ends.server, ends.now);
    const event rejected = ends.server.told();
    EXPECT_EQ(rejected.kind, event_kind::rejected);
    EXPECT_EQ(std::get<rej>(rejected.body).what, about::rep);
    EXPECT_EQ(ends.server_state(), std::nullopt);
    EXPECT_EQ(ends.client_state(), state::time_wait);
}

/// Each message has all the repeats, however many the one before it took.
TEST(CmManager, RepeatsAreCountedAnewForEachMessage)
{
    both ends;
    ends.client.under_test.connect(ends.client.to(ends.server), usual_req(0x11), ends.now, ends.client_id);
    for (int repeat = 0; repeat < 3; ++repeat)
        ends.client.under_test.expire(ends.client.under_test.next_deadline());
    carry(ends.client, ends.server, ends.now);
    ends.server.under_test.accept(ends.server.told().id, {.queue = 0x111}, ends.now);
    carry(ends.client, ends.server, ends.now);
    ends.client.under_test.ready(ends.client_id);
    ends.client.under_test.disconnect(ends.client_id, {}, ends.now);
    ends.client.out.sent.clear();
    for (int repeat = 0; repeat < 3; ++repeat) {
        ends.client.under_test.expire(ends.client.under_test.next_deadline());
        EXPECT_EQ(ends.client.take<dreq>().local_id, ends.client_id);
    }
    EXPECT_EQ(ends.client_state(), state::disconnect_sent);
}

TEST(CmManager, BacklogOfNoneIsOfOne)
{
    both ends;
    std::uint32_t listener = 0, id = 0;
    ends.server.under_test.listen(service + 1, {}, 0, listener);
    req request = usual_req(0x11);
    request.service = service + 1;
    ends.client.under_test.connect(ends.client.to(ends.server), request, ends.now, id);
    request.queue = 0x12;
    ends.client.under_test.connect(ends.client.to(ends.server), request, ends.now, id);
    carry(ends.client, ends.server, ends.now);
    EXPECT_EQ(std::get<req>(ends.server.told().body).queue, 0x11u);
    EXPECT_TRUE(ends.server.silent());
    EXPECT_EQ(ends.server.under_test.counted().refused, 1u);
}

TEST(CmManager, CrossingDisconnects)
{
    both ends;
    ends.until_established();
    ends.client.under_test.disconnect(ends.client_id, {}, ends.now);
    ends.server.under_test.disconnect(ends.server_id, {}, ends.now);
    carry(ends.client, ends.server, ends.now);
    for (end* one : {&ends.client, &ends.server}) {
        EXPECT_EQ(one->told().kind, event_kind::disconnected);
        EXPECT_TRUE(one->silent());
    }
    EXPECT_EQ(ends.client_state(), state::time_wait);
    EXPECT_EQ(ends.server_state(), state::time_wait);
    EXPECT_EQ(ends.client.under_test.disconnect(ends.client_id, {}, ends.now), refusal::none);
    EXPECT_TRUE(ends.client.silent());
}

TEST(CmManager, RepeatedDisconnectIsAnsweredEvenWhenAllIsGone)
{
    both ends;
    ends.until_established();
    ends.client.under_test.disconnect(ends.client_id, {}, ends.now);
    const mad request = ends.client.take_sent();
    ends.server.receive(ends.client, request, ends.now);
    const mad reply = ends.server.take_sent();
    EXPECT_EQ(reply.transaction, request.transaction);
    EXPECT_EQ(std::get<drep>(reply.body), (drep{ends.server_id, ends.client_id, {}}));
    ends.server.receive(ends.client, request, ends.now);
    EXPECT_EQ(ends.server.take_sent(), reply);
    ends.server.under_test.expire(ends.now + 1000 * ms);
    EXPECT_EQ(ends.server.under_test.size(), 0u);
    ends.server.receive(ends.client, request, ends.now + 1000 * ms);
    EXPECT_EQ(ends.server.take_sent(), reply);
    // And one that is never answered ends, too.
    while (ends.client_state() != state::time_wait)
        ends.client.under_test.expire(ends.client.under_test.next_deadline());
    EXPECT_EQ(ends.client.out.sent.size(), 3u);
    EXPECT_EQ(ends.client.told().kind, event_kind::disconnected);
}

TEST(CmManager, RequestsThatNobodyCanAcceptAreRejected)
{
    both ends;
    const auto reason = [&](auto change) {
        req request = usual_req(0x11);
        request.local_id = 0x55;
        change(request);
        ends.server.receive(ends.client, {9, request}, ends.now);
        const mad answer = ends.server.take_sent();
        EXPECT_EQ(answer.transaction, 9u);
        const rej rejected = std::get<rej>(answer.body);
        EXPECT_EQ(rejected.remote_id, 0x55u);
        EXPECT_EQ(rejected.local_id, 0u);
        EXPECT_TRUE(ends.server.silent());
        EXPECT_EQ(ends.server.under_test.size(), 0u);
        return rejected.reason;
    };
    EXPECT_EQ(reason([](req& request) { ++request.service; }), reject_reason::invalid_service_id);
    EXPECT_EQ(reason([](req& request) { request.path_mtu = 0; }), reject_reason::invalid_path_mtu);
    EXPECT_EQ(reason([](req& request) { request.path_mtu = 6; }), reject_reason::invalid_path_mtu);
    for (const auto service : {transport_service::reliable_datagram, transport_service::extended})
        EXPECT_EQ(reason([&](req& request) { request.transport = service; }),
                  reject_reason::invalid_transport_service_type);
}

TEST(CmManager, ListenersByAddress)
{
    both ends;
    std::uint32_t own = 0, again = 0;
    EXPECT_EQ(ends.server.under_test.listen(service, {}, 1, again), refusal::service_in_use);
    EXPECT_EQ(ends.server.under_test.listen(service, ends.server.own, 1, own), refusal::none);
    ends.client.under_test.connect(ends.client.to(ends.server), usual_req(0x11), ends.now, ends.client_id);
    carry(ends.client, ends.server, ends.now);
    // Not taken: whoever stops listening rejects it.
    EXPECT_EQ(ends.server.under_test.stop_listening(own, ends.now), refusal::none);
    EXPECT_EQ(ends.server.under_test.stop_listening(own, ends.now), refusal::unknown_service);
    EXPECT_FALSE(ends.server.under_test.next_event());
    carry(ends.client, ends.server, ends.now);
    EXPECT_EQ(std::get<rej>(ends.client.told().body).reason, reject_reason::invalid_service_id);
    ends.client.under_test.connect(ends.client.to(ends.server), usual_req(0x12), ends.now, ends.client_id);
    carry(ends.client, ends.server, ends.now);
    EXPECT_EQ(ends.server.told().listener, ends.listener);
}

TEST(CmManager, ResolvesServices)
{
    both ends;
    std::uint32_t id = 0;
    sidr_req request{.partition_key = 0xffff, .service = service, .data = {1, 2, 3}};
    ends.client.under_test.resolve(ends.client.to(ends.server), request, 14, 2, ends.now, id);
    const mad sent = ends.client.take_sent();
    ends.client.under_test.expire(ends.now + usual_wait);
    EXPECT_EQ(ends.client.take_sent(), sent);
    ends.server.receive(ends.client, sent, ends.now);
    ends.server.receive(ends.client, sent, ends.now);
    const event asked = ends.server.told();
    EXPECT_EQ(asked.kind, event_kind::service_request);
    EXPECT_EQ(std::get<sidr_req>(asked.body).data, request.data);
    EXPECT_TRUE(ends.server.silent());
    sidr_rep reply{.queue = 0x21, .queue_key = 0x01234567, .data = {4}};
    ASSERT_EQ(ends.server.under_test.answer(asked.id, reply, ends.now), refusal::none);
    const mad answer = ends.server.take_sent();
    ends.server.receive(ends.client, sent, ends.now);
    EXPECT_EQ(ends.server.take_sent(), answer);
    ends.client.receive(ends.server, answer, ends.now);
    const event told = ends.client.told();
    EXPECT_EQ(told.kind, event_kind::service_response);
    EXPECT_TRUE(told.gone);
    reply.request_id = id;
    reply.service = service;
    EXPECT_EQ(std::get<sidr_rep>(told.body), reply);
    ends.server.under_test.expire(ends.now + 1000 * ms);
    EXPECT_EQ(ends.client.under_test.size() + ends.server.under_test.size(), 0u);
    EXPECT_TRUE(ends.server.silent());
}

TEST(CmManager, ServiceThatNobodyProvides)
{
    both ends;
    std::uint32_t id = 0;
    ends.client.under_test.resolve(ends.client.to(ends.server), {.service = 5}, 14, 0, ends.now, id);
    const mad sent = ends.client.take_sent();
    ends.server.receive(ends.client, sent, ends.now);
    EXPECT_EQ(ends.server.take<sidr_rep>().status, service_status::unknown_service);
    ends.client.under_test.expire(ends.now + usual_wait);
    const event told = ends.client.told();
    EXPECT_EQ(told.kind, event_kind::unreachable);
    EXPECT_EQ(std::get<sidr_req>(told.body).service, 5u);
    EXPECT_EQ(ends.client.under_test.size(), 0u);
}

/// Both ends at one address, and one manager for both.
TEST(CmManager, ConnectsToItself)
{
    end self(1);
    const std::uint64_t now = 1;
    std::uint32_t listener = 0, id = 0;
    self.under_test.listen(service, {}, 1, listener);
    const auto loop = [&] {
        while (!self.out.sent.empty()) {
            const auto [to, what] = self.out.sent.front();
            self.out.sent.pop_front();
            self.under_test.receive(to, what, now);
        }
    };
    self.under_test.connect(self.to(self), usual_req(0x11), now, id);
    loop();
    const event asked = self.told();
    self.under_test.accept(asked.id, {.queue = 0x12}, now);
    loop();
    EXPECT_EQ(self.told().kind, event_kind::connect_response);
    self.under_test.ready(id);
    loop();
    EXPECT_EQ(self.told().kind, event_kind::established);
    self.under_test.destroy(id, now);
    loop();
    const event ended = self.told();
    EXPECT_EQ(ended.kind, event_kind::disconnected);
    EXPECT_EQ(ended.id, asked.id);
    EXPECT_TRUE(self.silent());
}

TEST(CmManager, CallsThatAreRefused)
{
    both ends;
    req bad = usual_req(1);
    std::uint32_t id = 0;
    manager& client = ends.client.under_test;
    EXPECT_EQ(client.connect(ends.client.to(ends.server), bad, 1, id), refusal::wrong_message);
    bad = usual_req(0x1000000);
    EXPECT_EQ(client.connect(ends.client.to(ends.server), bad, 1, id), refusal::wrong_message);
    bad = usual_req(2);
    bad.path_mtu = 6;
    EXPECT_EQ(client.connect(ends.client.to(ends.server), bad, 1, id), refusal::wrong_message);
    EXPECT_EQ(client.accept(5, {}, 1), refusal::unknown_connection);
    EXPECT_EQ(client.reject(5, {}, 1), refusal::unknown_connection);
    EXPECT_EQ(client.delay(5, 1), refusal::unknown_connection);
    EXPECT_EQ(client.ready(5), refusal::unknown_connection);
    EXPECT_EQ(client.established(5), refusal::unknown_connection);
    EXPECT_EQ(client.disconnect(5, {}, 1), refusal::unknown_connection);
    EXPECT_EQ(client.destroy(5, 1), refusal::unknown_connection);
    EXPECT_EQ(client.answer(5, {}, 1), refusal::unknown_connection);
    for (std::uint32_t queue = 2; queue < 1002; ++queue)
        EXPECT_EQ(client.connect(ends.client.to(ends.server), usual_req(queue), 1, id), refusal::none);
    EXPECT_EQ(client.connect(ends.client.to(ends.server), usual_req(5), 1, id), refusal::no_room);
    EXPECT_EQ(client.resolve(ends.client.to(ends.server), {}, 1, 1, 1, id), refusal::no_room);
}

} // namespace
