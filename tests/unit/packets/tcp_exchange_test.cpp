// Whole exchanges with a peer of other code over links that lose, double and reorder; every byte is compared.
#include <deque>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tcp_peer.hpp"

namespace weftio::test {
namespace {

struct exchange_options {
    tcp_peer_options peer;
    tcp_link_options link;
    std::uint32_t room = 20;        ///< segments that the send ring takes in a millisecond
    std::uint32_t half_open = 1024; ///< 0: every connection begins with a cookie
    bool slow_application = false;  ///< takes what it receives in small pieces
};

class exchange {
 public:
    exchange(const exchange_options& options, std::uint32_t seed)
        : options_(options), random_(seed), peer_(options.peer, random_), to_server_(options.link, random_),
          to_peer_(options.link, random_)
    {
        server_.settings().half_open_limit = options.half_open;
        server_.settings().tries = 30; // links are worse than any that is to be used
        server_.settings().syn_tries = 30;
        server_.application = [this](tcp_server&, std::uint32_t id, std::uint32_t events) { serve(id, events); };
    }

    /// Runs until both ends are done, or for ten minutes of the link's time.
    void run()
    {
        for (std::uint32_t ms = 0; ms < 600'000 && !peer_.was_reset() && !(peer_.done() && closed_); ++ms)
            step(ms);
        EXPECT_FALSE(peer_.was_reset());
        EXPECT_EQ(peer_.received(), options_.peer.wants);
        EXPECT_EQ(peer_.wrong(), 0u);
        EXPECT_TRUE(peer_.done());
        EXPECT_TRUE(closed_);
        EXPECT_EQ(received_.size(), options_.peer.sends);
        for (std::size_t at = 0; at < received_.size(); ++at)
            ASSERT_EQ(received_[at], tcp_peer::content(at)) << at;
        server_.pass(200'000);
        EXPECT_EQ(server_.endpoint.connections, 0u);
        EXPECT_EQ(server_.inconsistency(), "");
    }

    [[nodiscard]] const tcp_counters& counters() const { return server_.endpoint.counters; }
    [[nodiscard]] std::uint64_t took_ms() const { return (server_.now_ns - 1'000'000'000'000) / 1'000'000; }

 private:
    void step(std::uint32_t ms)
    {
        server_.now_ns += 1'000'000;
        server_.room = options_.room;
        if (options_.slow_application && id_ && !closed_ && ms % 40 == 0)
            server_.open_window(id_, static_cast<std::uint32_t>(random_() % 900));
        for (const tcp_message& each : to_server_.arrived(server_.now_ns))
            server_.receive(each);
        server_.run();
        for (const tcp_message& each : server_.sent)
            to_peer_.send(each, server_.now_ns);
        server_.sent.clear();
        for (const tcp_message& each : to_peer_.arrived(server_.now_ns))
            peer_.receive(each);
        for (const tcp_message& each : peer_.poll(server_.now_ns))
            to_server_.send(each, server_.now_ns);
    }

    /// The application: sends so many bytes in pieces and closes; keeps up to 50,000 bytes queued.
    void serve(std::uint32_t id, std::uint32_t events)
    {
        tcp_session& session = server_.session(id);
        if (events & TCP_EVENT_ESTABLISHED)
            id_ = id;
        received_ = session.received;
        if (events & TCP_EVENT_RESET)
            ADD_FAILURE() << "the server gave up";
        if (session.events & TCP_EVENT_CLOSED)
            closed_ = true;
        if (!(session.events & TCP_EVENT_ESTABLISHED) || closed_)
            return;
        while (session.queued < options_.peer.wants && session.queued - session.acknowledged < 50'000) {
            const std::uint64_t left = options_.peer.wants - session.queued;
            const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, 1 + random_() % 20'000));
            session.queued += bytes;
            tcp_queue(&server_.connection(id), bytes, server_.now());
        }
        const bool peer_closed = session.events & TCP_EVENT_PEER_CLOSED;
        if (session.queued == options_.peer.wants && (peer_closed || !options_.peer.closes_first) &&
            session.received.size() == options_.peer.sends)
            tcp_close(&server_.connection(id), server_.now());
    }

    exchange_options options_;
    std::mt19937 random_;
    tcp_peer peer_;
    tcp_link to_server_, to_peer_;
    tcp_server server_{std::make_shared<tcp_world>()};
    std::uint32_t id_ = 0;
    bool closed_ = false;
    std::string received_;
};

TEST(TcpExchange, OverAPerfectLinkSendsNothingTwice)
{
    exchange it({.peer = {.buffer = 60000, .sends = 3000, .wants = 2'000'000}, .link = {}, .room = 1000}, 1);
    it.run();
    EXPECT_EQ(it.counters().retransmitted, 0u);
    EXPECT_EQ(it.counters().timeouts, 0u);
    EXPECT_EQ(it.counters().bytes_acknowledged, 2'000'000u);
    EXPECT_EQ(it.counters().bytes_accepted, 3000u);
}

TEST(TcpExchange, OfManySeedsArrivesWholeOverBadLinks)
{
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed * 77);
        exchange_options options;
        options.peer.initial =
            seed % 3 ? static_cast<std::uint32_t>(random()) : 0u - static_cast<std::uint32_t>(random() % 3000);
        options.peer.timestamps = seed % 2;
        if (seed % 4 < 2)
            options.peer.scale = static_cast<std::uint8_t>(random() % 9);
        options.peer.closes_first = seed % 5 < 2;
        options.peer.buffer = static_cast<std::uint32_t>(2000 + random() % 60000);
        options.peer.mss = static_cast<std::uint16_t>(100 + random() % 1400);
        options.peer.sends = random() % 20000;
        options.peer.wants = random() % 200000;
        options.link = {.loss = static_cast<double>(random() % 12) / 100,
                        .doubles = 0.03,
                        .late = static_cast<double>(random() % 3) / 10,
                        .delay_ns = random() % 20 * 1'000'000};
        options.room = static_cast<std::uint32_t>(1 + random() % 30);
        options.half_open = seed % 3 == 0 ? 0 : 100;
        options.slow_application = seed % 7 == 0;
        exchange it(options, seed);
        it.run();
        if (testing::Test::HasFailure())
            return;
    }
}

TEST(TcpExchange, RecoversFromSingleLossesWithoutTimeouts)
{
    exchange it({.peer = {.buffer = 60000, .wants = 3'000'000}, .link = {.loss = 0.001}, .room = 1000}, 5);
    it.run();
    EXPECT_GT(it.counters().fast_retransmits, 0u);
    EXPECT_LE(it.counters().timeouts, 1u);
    EXPECT_LT(it.counters().retransmitted, 50u);
}

} // namespace
} // namespace weftio::test
