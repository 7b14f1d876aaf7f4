// The connection managers of two ports, which speak to each other through queue pair 1.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <optional>

#include <gtest/gtest.h>

#include "connections/agent.hpp"
#include "connections/connection_end.hpp"
#include "public_pair.hpp"
#include "rdma/rdma_end.hpp"
#include "weftio/error.hpp"

namespace weftio::test {

namespace {

constexpr std::uint64_t service = 0x1060001;

/// What an agent has told.
class told_events {
 public:
    void push(const cm::event& next)
    {
        if (next.kind == cm::event_kind::time_wait_over)
            return;
        const std::scoped_lock lock(mutex_);
        all_.push_back(next);
        changed_.notify_all();
    }
    /// The next one, for which it waits. A default one when none comes.
    cm::event next()
    {
        std::unique_lock lock(mutex_);
        if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !all_.empty(); })) {
            ADD_FAILURE() << "no event";
            return {};
        }
        const cm::event first = all_.front();
        all_.pop_front();
        return first;
    }

 private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<cm::event> all_;
};

class Agents : public testing::TestWithParam<bool> {
 protected:
    Agents()
    {
        for (unsigned end = 0; end < ends(); ++end)
            agents[end].emplace(*at[end], *devices.devices[end],
                                [this, end](const cm::event& next) { events[end].push(next); });
    }
    unsigned ends() const { return GetParam() ? 1 : 2; }
    connections::agent& passive() { return *agents[ends() - 1]; }
    told_events& passive_events() { return events[ends() - 1]; }
    static net::roce_gid address(unsigned end) { return *rdma::address_of_host(end == 0 ? "10.0.0.1" : "10.0.0.2"); }
    cm::path way() const { return {.local = address(0), .peer = address(ends() - 1)}; }
    bool resolve()
    {
        std::promise<bool> found;
        EXPECT_TRUE(agents[0]->resolve(way(), [&](bool yes) { found.set_value(yes); }));
        return found.get_future().get();
    }
    std::uint32_t listen()
    {
        std::uint32_t listener = 0;
        const cm::refusal why =
            passive().call([&](cm::manager& one, std::uint64_t) { return one.listen(service, {}, 8, listener); });
        EXPECT_EQ(why, cm::refusal::none);
        return listener;
    }
    std::uint32_t connect()
    {
        std::uint32_t id = 0;
        const cm::req request{
            .service = service, .queue = 77, .remote_response_timeout = 18, .path_mtu = 3, .most_retries = 15};
        const cm::refusal why =
            agents[0]->call([&](cm::manager& one, std::uint64_t now) { return one.connect(way(), request, now, id); });
        EXPECT_EQ(why, cm::refusal::none);
        return id;
    }

    wired_ports ports{engine_mode::thread};
    std::array<port*, 2> at = ports.of_ends(false);
    public_ends devices{at, engine_mode::thread};
    std::array<told_events, 2> events;
    std::array<std::optional<connections::agent>, 2> agents;
};
INSTANTIATE_TEST_SUITE_P(At, Agents, testing::Bool(),
                         [](const auto& one_port) { return one_port.param ? "OnePort" : "TwoPorts"; });

} // namespace

TEST_P(Agents, ConnectAndDisconnect)
{
    const std::uint32_t listener = listen();
    ASSERT_TRUE(resolve());
    const std::uint32_t id = connect();
    const cm::event asked = passive_events().next();
    ASSERT_EQ(asked.kind, cm::event_kind::connect_request);
    EXPECT_EQ(asked.listener, listener);
    EXPECT_EQ(asked.route.peer, address(0));
    EXPECT_EQ(asked.route.local, way().peer);
    EXPECT_EQ(std::get<cm::req>(asked.body).queue, 77u);
    passive().call([&](cm::manager& one, std::uint64_t now) { return one.accept(asked.id, {.queue = 78}, now); });
    const cm::event answered = events[0].next();
    ASSERT_EQ(answered.kind, cm::event_kind::connect_response);
    EXPECT_EQ(answered.id, id);
    EXPECT_EQ(std::get<cm::rep>(answered.body).queue, 78u);
    agents[0]->call([&](cm::manager& one, std::uint64_t) { return one.ready(id); });
    EXPECT_EQ(passive_events().next().kind, cm::event_kind::established);
    agents[0]->call([&](cm::manager& one, std::uint64_t now) { return one.disconnect(id, {}, now); });
    EXPECT_EQ(passive_events().next().kind, cm::event_kind::disconnected);
    EXPECT_EQ(events[0].next().kind, cm::event_kind::disconnected);
}

TEST_P(Agents, RejectAServiceThatNobodyListensTo)
{
    ASSERT_TRUE(resolve());
    const std::uint32_t id = connect();
    const cm::event refused = events[0].next();
    ASSERT_EQ(refused.kind, cm::event_kind::rejected);
    EXPECT_EQ(refused.id, id);
    EXPECT_EQ(std::get<cm::rej>(refused.body).reason, cm::reject_reason::invalid_service_id);
}

/// A listener's user takes a request while its REJ comes.
TEST(ConnectionEnd, KeepsItsRequestWhenItsPeerGivesUp)
{
    connections::connection_end end(cm::event{.id = 5, .route = {}, .body = cm::req{.queue = 77}});
    end.told({.kind = cm::event_kind::rejected, .id = 5, .route = {}, .body = cm::rej{}});
    EXPECT_EQ(end.now(), connections::connection_end::phase::over);
    ASSERT_TRUE(std::holds_alternative<cm::req>(end.first().body));
    EXPECT_EQ(std::get<cm::req>(end.first().body).queue, 77u);
}

TEST_P(Agents, ConnectAThousandTimes)
{
    listen();
    ASSERT_TRUE(resolve());
    for (int round = 0; round != 1000; ++round) {
        const std::uint32_t id = connect();
        const cm::event asked = passive_events().next();
        ASSERT_EQ(asked.kind, cm::event_kind::connect_request) << round;
        passive().call([&](cm::manager& one, std::uint64_t now) {
            return one.reject(asked.id, {.reason = cm::reject_reason::consumer_reject}, now);
        });
        const cm::event refused = events[0].next();
        ASSERT_EQ(refused.kind, cm::event_kind::rejected) << round;
        ASSERT_EQ(refused.id, id);
    }
}

TEST_P(Agents, AreAloneAtTheirPort)
{
    try {
        const connections::agent second(*at[0], *devices.devices[0], [](const cm::event&) {});
        FAIL();
    } catch (const error& why) {
        EXPECT_EQ(why.code(), errc::in_use);
        EXPECT_NE(std::string(why.what()).find("already receives management datagrams"), std::string::npos);
    }
    agents[0].reset();
    const connections::agent next(*at[0], *devices.devices[0], [](const cm::event&) {});
}

} // namespace weftio::test
