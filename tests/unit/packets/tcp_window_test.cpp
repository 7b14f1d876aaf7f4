// What the windows of both ends allow, and what is sent again.
#include "tcp_script.hpp"

namespace weftio::test {
namespace {

class TcpWindow : public tcp_script {
 protected:
    /// Reads `count` full segments of 1000 bytes from byte `from` on.
    void full(std::uint32_t from, std::uint32_t count)
    {
        for (std::uint32_t i = 0; i < count; ++i, from += 1000)
            out(fmt::format("A {}:{}", from, from + 1000));
    }
};

TEST_F(TcpWindow, BeginsWithTenSegmentsAndDoubles)
{
    connect();
    queue(100000);
    full(1, 10);
    nothing();
    in("A 1 ack 2001");
    full(10001, 4);
    nothing();
}

TEST_F(TcpWindow, SegmentsAreNoLongerThanThePeersMssDownTo48)
{
    connect("S 0 win 65535 mss 48");
    queue(100);
    out("A 1:49");
    out("A 49:97");
    EXPECT_EQ(counters().low_mss, 0u);
}

TEST_F(TcpWindow, APeerWithALowerMssGetsSegmentsOf48AndIsCounted)
{
    connect("S 0 win 65535 mss 47");
    queue(100);
    out("A 1:49");
    out("A 49:97");
    EXPECT_EQ(counters().low_mss, 1u);
}

TEST_F(TcpWindow, WithTimestampsSegmentsLeaveRoomForThem)
{
    connect("S 0 win 65535 mss 48 ts 500 0");
    queue(100);
    out("A 1:37"); // RFC 6691: the MSS includes the options
}

TEST_F(TcpWindow, GrowsBySegmentsOnlyBeyondTheThreshold)
{
    connect();
    tcp().threshold = 5000;
    queue(100000);
    full(1, 10);
    in("A 1 ack 1001"); // 1000 * 1000 / 10000 bytes more
    full(10001, 1);
    nothing();
    EXPECT_EQ(tcp().congestion_window, 10100u);
}

TEST_F(TcpWindow, IsNotOpenedByAConnectionThatDoesNotFillIt)
{
    connect();
    queue(1000);
    out("PA 1:1001");
    in("A 1 ack 1001");
    EXPECT_EQ(tcp().congestion_window, 10000u);
}

TEST_F(TcpWindow, OfThePeerIsScaled)
{
    connect("S 0 win 65535 mss 1000 ws 3");
    in("A 1 ack 1 win 400"); // 3200 bytes
    queue(100000);
    full(1, 3);
    nothing(); // 200 bytes would be a silly piece
    in("A 1 ack 3001 win 401");
    full(3001, 3);
    nothing();
}

TEST_F(TcpWindow, OfASynIsNeverScaled)
{
    in("S 0 win 100 ws 7");
    out("SA 0 ack 1 ws 0");
    in("A 1 ack 1 win 2");
    id = server.last;
    EXPECT_EQ(tcp().window, 256u);
}

TEST_F(TcpWindow, IsNotScaledWithoutTheOption)
{
    in("S 0");
    out("SA 0 ack 1 ws 255");
    in("A 1 ack 1 win 2");
    id = server.last;
    EXPECT_EQ(tcp().window, 2u);
}

TEST_F(TcpWindow, TakesNoOldUpdate)
{
    connect();
    in("A 1:11 ack 1 win 3000");
    out("A 1 ack 11");
    in("A 1 ack 1 win 9000"); // older than what has arrived
    out("A 1 ack 11");        // outside the window
    EXPECT_EQ(tcp().window, 3000u);
}

TEST_F(TcpWindow, SendsALostSegmentAfterThreeDuplicates)
{
    connect();
    queue(10000);
    full(1, 9);
    out("PA 9001:10001");
    in("A 1 ack 1001");
    in("A 1 ack 1001");
    in("A 1 ack 1001");
    nothing();
    in("A 1 ack 1001");
    out("A 1001:2001");
    nothing();
    EXPECT_EQ(counters().fast_retransmits, 1u);
    EXPECT_EQ(tcp().threshold, 4500u);
    in("A 1 ack 5001"); // a partial one: what follows it is lost too (RFC 6582)
    out("A 5001:6001");
    nothing();
    in("A 1 ack 10001");
    nothing();
    EXPECT_FALSE(tcp().flags & TCP_RECOVERY);
    EXPECT_LE(tcp().congestion_window, 4500u);
}

TEST_F(TcpWindow, LetsTheFirstTwoDuplicatesSendNewSegments)
{
    connect();
    queue(100000);
    full(1, 10);
    in("A 1 ack 1");
    full(10001, 1);
    in("A 1 ack 1");
    full(11001, 1);
    nothing();
}

TEST_F(TcpWindow, TakesNoUpdateAndNoDataForADuplicate)
{
    connect();
    queue(10000);
    full(1, 9);
    out("PA 9001:10001");
    for (int i = 0; i < 5; ++i)
        in(fmt::format("A 1 ack 1 win {}", 60000 + i));
    nothing();
    EXPECT_EQ(counters().fast_retransmits, 0u);
}

TEST_F(TcpWindow, SendsAllAgainAfterATimeoutButWithOneSegmentFirst)
{
    connect();
    queue(10000);
    full(1, 9);
    out("PA 9001:10001");
    pass(210);
    full(1, 1);
    nothing();
    in("A 1 ack 1001");
    full(1001, 2);
    in("A 1 ack 10001"); // the rest had arrived
    nothing();
    EXPECT_EQ(counters().timeouts, 1u);
}

TEST_F(TcpWindow, GivesUpAfterEightTimeouts)
{
    connect();
    queue(100);
    out("PA 1:101");
    for (int tries = 0; tries < 8; ++tries) {
        for (const std::size_t before = server.sent.size(); server.sent.size() == before;)
            pass(10);
        out("PA 1:101");
    }
    pass(65000);
    out("RA 101");
    nothing();
    EXPECT_EQ(events() & (TCP_EVENT_CLOSED | TCP_EVENT_RESET), std::uint32_t{TCP_EVENT_CLOSED | TCP_EVENT_RESET});
    EXPECT_EQ(server.endpoint.connections, 0u);
    EXPECT_EQ(counters().timed_out, 1u);
}

TEST_F(TcpWindow, ThatIsClosedIsProbedForAsLongAsThePeerAnswers)
{
    server.settings().stall = 0;
    connect();
    in("A 1 ack 1 win 0");
    queue(3000);
    nothing();
    for (int probe = 0; probe < 30; ++probe) {
        const std::size_t before = server.sent.size();
        for (int ms = 0; server.sent.size() == before && ms < 61000; ms += 10)
            pass(10);
        out("A 0 ack 1"); // outside the peer's window, which must answer it
        nothing();
        in("A 1 ack 1 win 0");
    }
    EXPECT_EQ(tcp().state, TCP_STATE_ESTABLISHED);
    in("A 1 ack 1 win 2500");
    EXPECT_EQ(tcp().timeout, server.settings().least_timeout); // no longer that of the probes
    full(1, 2);
    nothing();
    in("A 1 ack 2001 win 2500");
    out("PA 2001:3001");
    EXPECT_GE(counters().window_probes, 30u);
}

TEST_F(TcpWindow, ThatStaysClosedForTooLongEndsTheConnection)
{
    connect();
    in("A 1 ack 1 win 0");
    queue(3000);
    for (int second = 0; second < 310; ++second) {
        pass(1000);
        if (server.endpoint.connections)
            in("A 1 ack 1 win 0");
    }
    EXPECT_TRUE(events() & TCP_EVENT_RESET);
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpWindow, ThatIsTakenBackIsProbed)
{
    connect();
    queue(2000);
    full(1, 1);
    out("PA 1001:2001");
    in("A 1 ack 1 win 0");
    pass(210);
    out("A 0 ack 1");
    in("A 1 ack 1 win 1500");
    out("A 1:1001");
    nothing();
}

TEST_F(TcpWindow, OfOneByteSendsBytes)
{
    connect();
    in("A 1 ack 1 win 1");
    queue(3);
    out("A 1:2");
    in("A 1 ack 2 win 1");
    out("A 2:3");
    in("A 1 ack 3 win 1");
    out("PA 3:4");
}

TEST_F(TcpWindow, LetsFinWait)
{
    connect();
    in("A 1 ack 1 win 5");
    queue(5);
    out("PA 1:6");
    close();
    nothing();
    in("A 1 ack 6 win 5");
    out("FA 6");
}

TEST_F(TcpWindow, OfTheApplicationIsAnnounced)
{
    connect();
    server.window = 60;
    in("PA 1:101 ack 1");
    out("A 1 ack 61 win 0");
    in("PA 61:101 ack 1"); // what was announced before still counts, but nobody takes it
    out("A 1 ack 61 win 0");
    server.open_window(id, 1000);
    out("A 1 ack 61 win 1000");
    in("PA 61:101 ack 1");
    out("A 1 ack 101 win 960");
    EXPECT_EQ(server.session(id).received.size(), 100u);
}

TEST_F(TcpWindow, HoldsAFinBackUntilAllBeforeItIsTaken)
{
    connect();
    server.window = 60;
    in("FA 1:101 ack 1");
    out("A 1 ack 61 win 0");
    EXPECT_FALSE(events() & TCP_EVENT_PEER_CLOSED);
    server.open_window(id, 1000);
    out("A 1 ack 61 win 1000");
    in("FA 61:101 ack 1");
    out("A 1 ack 102");
    EXPECT_TRUE(events() & TCP_EVENT_PEER_CLOSED);
}

TEST_F(TcpWindow, BeginsAnewAfterARest)
{
    connect();
    queue(20000);
    full(1, 10);
    in("A 1 ack 10001");
    full(10001, 9);
    out("PA 19001:20001");
    in("A 1 ack 20001");
    EXPECT_GT(tcp().congestion_window, 13000u);
    pass(1000);
    queue(50000);
    full(20001, 10);
    nothing();
}

TEST_F(TcpWindow, MeasuresRoundTripsWithTimestampsOfWhatWasSentAgain)
{
    connect("S 0 mss 1012 ts 500 0");
    queue(1000);
    out("PA 1:1001 ts 0 500");
    pass(210);
    out("PA 1:1001 ts 0 500");
    const std::uint32_t again = server.sent.back().segment.ts_value;
    tcp().smoothed = 0;
    pass(100);
    in(fmt::format("A 1 ack 1001 ts 1000 {}", again));
    EXPECT_NEAR(tcp().smoothed / 8, 105, 12);
}

TEST_F(TcpWindow, MeasuresNoRoundTripOfWhatWasSentAgain)
{
    connect();
    queue(1000);
    out("PA 1:1001");
    pass(210);
    out("PA 1:1001");
    in("A 1 ack 1001");
    EXPECT_EQ(tcp().smoothed / 8, 1u);
    EXPECT_EQ(tcp().timeout, 2 * server.settings().least_timeout); // Karn: backed off until the next measure
    queue(1000);
    out("PA 1001:2001");
    pass(50);
    in("A 1 ack 2001");
    EXPECT_EQ(tcp().timeout, server.settings().least_timeout);
    EXPECT_GT(tcp().smoothed / 8, 5u);
}

} // namespace
} // namespace weftio::test
