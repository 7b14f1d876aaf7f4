// The life of a connection: handshake, data, ends, and what is sent again.
#include "tcp_script.hpp"

namespace weftio::test {
namespace {

class TcpMainPath : public tcp_script {};

TEST_F(TcpMainPath, AnswersASynAndEstablishes)
{
    in("S 0 win 65535 mss 1460 ws 7");
    out("SA 0 ack 1 win 16384 mss 1460 ws 0");
    nothing();
    in("A 1 ack 1");
    nothing();
    id = server.last;
    EXPECT_EQ(events(), std::uint32_t{TCP_EVENT_ESTABLISHED});
    EXPECT_EQ(counters().opened, 1u);
}

TEST_F(TcpMainPath, TakesARequestAndSendsTheResponseWithItsAck)
{
    connect();
    server.application = [](tcp_server& on, std::uint32_t connection, std::uint32_t) {
        if (on.session(connection).received.size() == 100 && on.session(connection).queued == 0) {
            on.session(connection).queued = 2500;
            tcp_queue(&on.connection(connection), 2500, on.now());
        }
    };
    in("PA 1:101 ack 1");
    out("A 1:1001 ack 101");
    out("A 1001:2001 ack 101");
    out("PA 2001:2501 ack 101");
    nothing();
    in("A 101 ack 2501");
    nothing();
    EXPECT_EQ(server.session(id).acknowledged, 2500u);
    EXPECT_EQ(server.session(id).received[0], peer_content(1));
}

TEST_F(TcpMainPath, AcknowledgesWhatGetsNoResponse)
{
    connect();
    in("PA 1:101 ack 1");
    out("A 1 ack 101 win 16384");
    nothing();
}

TEST_F(TcpMainPath, ClosesAfterThePeer)
{
    connect();
    in("FA 1 ack 1");
    out("A 1 ack 2");
    EXPECT_TRUE(events() & TCP_EVENT_PEER_CLOSED);
    close();
    out("FA 1 ack 2");
    in("A 2 ack 2");
    nothing();
    EXPECT_TRUE(events() & TCP_EVENT_CLOSED);
    EXPECT_EQ(server.endpoint.connections, 0u);
    EXPECT_EQ(server.world().pool.in_use, 0u);
}

TEST_F(TcpMainPath, ClosesBeforeThePeerAndWaits)
{
    connect();
    queue(500);
    out("PA 1:501");
    close();
    out("FA 501");
    in("A 1 ack 501");
    in("A 1 ack 502");
    nothing();
    EXPECT_EQ(tcp().state, TCP_STATE_FIN_WAIT_2);
    in("FA 1 ack 502");
    out("A 502 ack 2");
    EXPECT_EQ(tcp().state, TCP_STATE_TIME_WAIT);
    EXPECT_TRUE(events() & TCP_EVENT_CLOSED);
    pass(59000);
    EXPECT_EQ(server.endpoint.connections, 1u);
    pass(2000);
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpMainPath, EndsByAReset)
{
    connect();
    queue(500);
    out("PA 1:501");
    in("R 1");
    nothing();
    EXPECT_TRUE(events() & TCP_EVENT_RESET);
    EXPECT_EQ(server.endpoint.connections, 0u);
    EXPECT_EQ(counters().reset_by_peer, 1u);
}

TEST_F(TcpMainPath, SendsAgainWhatIsNotAcknowledged)
{
    connect();
    queue(500);
    out("PA 1:501");
    pass(190);
    nothing();
    pass(25);
    out("PA 1:501");
    pass(375);
    nothing();
    pass(30);
    out("PA 1:501");
    in("A 1 ack 501");
    pass(5000);
    nothing();
    EXPECT_EQ(counters().timeouts, 2u);
}

TEST_F(TcpMainPath, RefusesWhereNothingListens)
{
    listens = false;
    in("S 0");
    ASSERT_EQ(server.sent.size(), 1u);
    EXPECT_EQ(server.sent[0].segment.flags, TCP_RST | TCP_ACK);
    EXPECT_EQ(server.sent[0].segment.acknowledgment, peer_initial + 1);
    EXPECT_EQ(counters().refused, 1u);
}

} // namespace
} // namespace weftio::test
