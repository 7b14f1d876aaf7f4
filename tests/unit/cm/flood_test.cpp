// Floods: memory stays bounded, and who is honest is served beside them.
#include <gtest/gtest.h>

#include "ends.hpp"

namespace {

using namespace cm_ends;

constexpr unsigned requests = 100'000;

/// From how many hosts a flood comes, and whether the user of the listener accepts it.
struct flood {
    const char* name;
    unsigned hosts;
    bool accepted;
};

std::ostream& operator<<(std::ostream& to, const flood& one)
{
    return to << one.name;
}

class CmFlood : public testing::TestWithParam<flood> {
 protected:
    static constexpr std::size_t backlog = 64, most = 500;

    CmFlood() : server(2, limited()) { server.under_test.listen(service, {}, backlog, listener); }

    static settings limited()
    {
        settings with = usual(2);
        with.most_connections = most;
        return with;
    }
    void flood_once(unsigned number)
    {
        req request = usual_req(0x100 + number % 0xfff000);
        request.local_id = number + 1;
        request.most_retries = 15;
        request.local_response_timeout = 20;
        const roce_gid host = address(1000 + number % GetParam().hosts);
        server.under_test.receive({server.own, host}, write({number, request}), now);
    }
    /// The user of the listener takes what there is.
    void serve()
    {
        while (const auto told = server.under_test.next_event()) {
            waiting = std::max(waiting, server.under_test.size());
            if (told->kind == event_kind::connect_request && (GetParam().accepted || told->route.peer == honest.own))
                server.under_test.accept(told->id, {.queue = 0x200 + queue++ % 0x1000}, now);
        }
    }
    /// What the server sends to the honest client arrives, and back; answers to the flood go nowhere.
    void carry_honest()
    {
        for (const auto& [to, what] : std::exchange(server.out.sent, {})) {
            if (to.peer == honest.own)
                honest.under_test.receive({to.peer, to.local}, what, now);
        }
        for (const auto& [to, what] : std::exchange(honest.out.sent, {}))
            server.under_test.receive({to.peer, to.local}, what, now);
    }
    /// The honest client begins anew when it is connected. @return connections so far
    void live_honestly()
    {
        if (!honest.under_test.state_of(client_id))
            honest.under_test.connect(honest.to(server), usual_req(0x11), now, client_id);
        while (const auto told = honest.under_test.next_event()) {
            failed += told->kind == event_kind::rejected || told->kind == event_kind::unreachable;
            if (told->kind == event_kind::connect_response) {
                honest.under_test.ready(client_id);
                honest.under_test.disconnect(client_id, {}, now);
            }
            connected += told->kind == event_kind::disconnected;
        }
    }

    end server, honest{1};
    std::uint32_t listener = 0, client_id = 0;
    std::size_t waiting = 0;
    unsigned queue = 0, failed = 0, connected = 0;
    std::uint64_t now = ms;
};

TEST_P(CmFlood, HonestClientIsServed)
{
    std::size_t largest = 0;
    for (unsigned number = 0; number < requests; ++number) {
        flood_once(number);
        now += ms / 50; // 50,000 a second
        largest = std::max(largest, server.under_test.size());
        if (number % 32 == 0)
            serve();
        live_honestly();
        carry_honest();
        server.under_test.expire(now);
        honest.under_test.expire(now);
    }
    EXPECT_LE(largest, most);
    EXPECT_GT(largest, std::size_t{20});
    EXPECT_EQ(failed, 0u);
    EXPECT_GE(connected, 8u); // in two seconds, each with 100 ms of rest
}

INSTANTIATE_TEST_SUITE_P(From, CmFlood,
                         testing::Values(flood{"one_host", 1, false}, flood{"one_host_accepted", 1, true},
                                         flood{"many_hosts", 200, false}, flood{"many_hosts_accepted", 200, true}),
                         [](const auto& of) { return std::string(of.param.name); });

/// Nobody takes events: neither those nor anything else piles up.
TEST(CmFloods, EventsOfAFloodDoNotPileUp)
{
    both ends;
    settings with = usual(5);
    with.most_connections = 100;
    end server(5, with);
    std::uint32_t listener = 0;
    server.under_test.listen(service, {}, 50, listener);
    for (unsigned number = 0; number < 20'000; ++number) {
        req request = usual_req(2 + number % 7);
        request.local_id = number + 1;
        const path from{server.own, address(number)};
        server.under_test.receive(from, write({number, request}), number);
        if (number % 3 == 0) // the peer gives up
            server.under_test.receive(from, write({number, rej{.local_id = number + 1}}), number);
        if (number % 5 == 0) // or comes again with the same queue pair
            server.under_test.receive(from,
                                      write({number,
                                             [&] {
                                                 request.local_id += 1'000'000;
                                                 return request;
                                             }()}),
                                      number);
        server.under_test.expire(number);
        server.out.sent.clear();
    }
    EXPECT_LE(server.under_test.size(), 100u);
    unsigned events = 0;
    while (server.under_test.next_event())
        ++events;
    EXPECT_LE(events, 50u);
    EXPECT_GT(server.under_test.counted().dropped, 1000u);
}

TEST(CmFloods, OfServicesThatNobodyHasLeaveNothing)
{
    both ends;
    for (unsigned number = 1; number <= 10'000; ++number) {
        req request = usual_req(number + 1);
        request.local_id = number;
        request.service = number;
        ends.server.receive(ends.client, {number, request}, ends.now);
        ends.server.receive(ends.client, {number, sidr_req{.request_id = number, .service = number}}, ends.now);
    }
    EXPECT_EQ(ends.server.under_test.size(), 0u);
    EXPECT_EQ(ends.server.out.sent.size(), 20'000u);
    EXPECT_FALSE(ends.server.under_test.next_event());
}

/// A host that has more than others waits in line; one with less takes the place of its oldest.
TEST(CmFloods, RoomGoesToWhoHasLess)
{
    half_open list;
    list.add(address(1), 11);
    EXPECT_EQ(list.victim(address(1)), std::nullopt);
    EXPECT_EQ(list.victim(address(2)), 11u);
    list.add(address(2), 21);
    list.add(address(2), 22);
    EXPECT_EQ(list.victim(address(1)), std::nullopt);
    EXPECT_EQ(list.victim(address(2)), std::nullopt);
    EXPECT_EQ(list.victim(address(3)), 21u);
    list.remove(address(2), 21);
    EXPECT_EQ(list.victim(address(3)), 11u);
    list.remove(address(1), 11);
    EXPECT_EQ(list.victim(address(3)), 22u);
    EXPECT_EQ(list.size(), 1u);
}

} // namespace
