// Segments that do not belong where they arrive: states of RFC 9293, blind attacks (RFC 5961), old timestamps (7323).
#include "tcp_script.hpp"

namespace weftio::test {
namespace {

class TcpStates : public tcp_script {
 protected:
    /// The segment is answered with an ACK that tells the truth, and changes nothing.
    void challenged(const std::string& text)
    {
        const std::uint8_t before = tcp().state;
        pass(1000); // beyond the limit of challenges
        in(text);
        out("A 1 ack 1");
        nothing();
        EXPECT_EQ(tcp().state, before);
    }
};

TEST_F(TcpStates, AnswersARepeatedSynWithTheSameSynAck)
{
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    nothing();
    EXPECT_EQ(counters().syn_received, 1u);
    EXPECT_EQ(server.endpoint.half_open, 1u);
}

TEST_F(TcpStates, SendsSynAckAgainAndGivesUpSilently)
{
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    for (int tries = 0; tries < 5; ++tries) {
        pass((1100u << tries) + 50);
        out("SA 0 ack 1");
        nothing();
    }
    pass(70000);
    nothing();
    EXPECT_EQ(server.endpoint.connections, 0u);
    EXPECT_EQ(server.endpoint.half_open, 0u);
    EXPECT_EQ(counters().syn_expired, 1u);
    EXPECT_EQ(counters().aborted, 0u);
}

TEST_F(TcpStates, StartsSlowlyAfterSynAckWasLostTwice)
{
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    pass(1100);
    out("SA 0 ack 1");
    pass(2200);
    out("SA 0 ack 1");
    in("A 1 ack 1");
    id = server.last;
    EXPECT_EQ(tcp().congestion_window, 1000u);
    EXPECT_EQ(tcp().timeout, 3 * server.settings().first_timeout);
}

TEST_F(TcpStates, ResetsAWrongEndOfAHandshake)
{
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    for (int ack : {0, 2, 70000}) {
        in(fmt::format("A 1 ack {}", ack));
        out(fmt::format("R {}", ack));
    }
    in("A 1 ack 1");
    nothing();
    EXPECT_EQ(counters().opened, 1u);
}

TEST_F(TcpStates, AHalfOpenConnectionEndsByAReset)
{
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    in("R 1");
    nothing();
    EXPECT_EQ(server.endpoint.connections, 0u);
    EXPECT_EQ(events(), 0u);
}

TEST_F(TcpStates, TakesDataAndFinWithTheLastAckOfTheHandshake)
{
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    in("FPA 1:51 ack 1");
    id = server.last;
    out("A 1 ack 52");
    EXPECT_EQ(events(), std::uint32_t{TCP_EVENT_ESTABLISHED | TCP_EVENT_PEER_CLOSED});
    EXPECT_EQ(server.session(id).received.size(), 50u);
}

TEST_F(TcpStates, DropsFlagsThatNoStackSends)
{
    for (const char* flags : {"SF 0", "SR 0", "SFR 0", "SFA 0 ack 1"})
        in(flags);
    nothing();
    EXPECT_EQ(counters().bad_flags, 4u);
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpStates, NeedsAnAckInASynchronizedState)
{
    connect();
    in("F 1");
    in("P 1:50");
    nothing();
    EXPECT_EQ(server.session(id).received, "");
}

TEST_F(TcpStates, ChallengesSynsAndResetsInTheWindow)
{
    connect();
    challenged("S 0");
    challenged("S 1");
    challenged("S 100");
    challenged("SA 1 ack 1");
    challenged("R 2");
    challenged("RA 16384 ack 1");
    in("R 16385"); // outside
    in("R 0");
    nothing();
    in("R 1");
    EXPECT_TRUE(events() & TCP_EVENT_RESET);
}

TEST_F(TcpStates, ChallengesAcksOfWhatWasNeverSent)
{
    connect();
    challenged("A 1 ack 2");
    challenged("A 1:50 ack 2000000000");
    challenged("A 1 ack -70000"); // older than the largest window
    in("A 1 ack 0");
    nothing();
    EXPECT_EQ(server.session(id).received, "");
}

TEST_F(TcpStates, LimitsChallenges)
{
    connect();
    for (int i = 0; i < 1000; ++i)
        in("S 100");
    out("A 1 ack 1");
    nothing();
    EXPECT_EQ(counters().challenges_withheld, 999u);
}

TEST_F(TcpStates, TakesWhatIsNewOfOverlappingSegments)
{
    connect();
    in("PA 1:101 ack 1");
    out("A 1 ack 101");
    in("PA 51:151 ack 1"); // half of it is old
    out("A 1 ack 151");
    in("PA 1:101 ack 1"); // all of it
    out("A 1 ack 151");
    in("PA 151:152 ack 1");
    out("A 1 ack 152");
    std::string wanted;
    for (std::uint32_t at = 1; at < 152; ++at)
        wanted += peer_content(at);
    EXPECT_EQ(server.session(id).received, wanted);
}

TEST_F(TcpStates, AsksForWhatIsMissing)
{
    connect();
    in("PA 101:201 ack 1");
    out("A 1 ack 1");
    in("FA 201 ack 1");
    out("A 1 ack 1");
    EXPECT_EQ(server.session(id).received, "");
    EXPECT_EQ(counters().out_of_order, 2u);
}

TEST_F(TcpStates, TakesNoByteBeyondItsWindow)
{
    server.settings().receive_window = 100;
    connect();
    in("PA 1:151 ack 1");
    out("A 1 ack 101 win 100");
    in("PA 301:351 ack 1");
    out("A 1 ack 101");
    EXPECT_EQ(server.session(id).received.size(), 100u);
}

TEST_F(TcpStates, KeepsQuietAboutEmptySegments)
{
    connect();
    for (int i = 0; i < 5; ++i)
        in("A 1 ack 1");
    nothing();
}

TEST_F(TcpStates, AcknowledgesARepeatedFin)
{
    connect();
    in("FA 1 ack 1");
    out("A 1 ack 2");
    in("FA 1 ack 1");
    out("A 1 ack 2");
    close();
    out("FA 1 ack 2");
    in("FA 1 ack 1");
    out("A 2 ack 2");
    pass(1200);
    EXPECT_GT(counters().timeouts, 0u);
    in("A 2 ack 2");
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpStates, TakesNothingAfterThePeersFin)
{
    connect();
    in("FA 1 ack 1");
    out("A 1 ack 2");
    in("PA 2:50 ack 1");
    out("A 1 ack 2");
    EXPECT_EQ(server.session(id).received, "");
}

TEST_F(TcpStates, BothEndsCloseAtOnce)
{
    connect();
    close();
    out("FA 1 ack 1");
    in("FA 1 ack 1"); // before it has seen ours
    out("A 2 ack 2");
    EXPECT_EQ(tcp().state, TCP_STATE_CLOSING);
    in("A 2 ack 2");
    EXPECT_EQ(tcp().state, TCP_STATE_TIME_WAIT);
    EXPECT_EQ(events() & (TCP_EVENT_CLOSED | TCP_EVENT_RESET), std::uint32_t{TCP_EVENT_CLOSED});
}

TEST_F(TcpStates, SendsFinAgain)
{
    connect();
    close();
    out("FA 1");
    pass(210);
    out("FA 1");
    in("FA 1 ack 2");
    out("A 2 ack 2");
    EXPECT_EQ(tcp().state, TCP_STATE_TIME_WAIT);
}

TEST_F(TcpStates, StillReceivesAfterItHasClosed)
{
    connect();
    close();
    out("FA 1");
    in("A 1 ack 2");
    in("PA 1:101 ack 2");
    out("A 2 ack 101");
    EXPECT_EQ(server.session(id).received.size(), 100u);
}

TEST_F(TcpStates, WaitsForThePeersFinOnlySoLong)
{
    connect();
    close();
    out("FA 1");
    in("A 1 ack 2");
    pass(61000);
    out("RA 2");
    EXPECT_EQ(server.endpoint.connections, 0u);
}

class TcpTimeWait : public TcpStates {
 protected:
    void wait_from(const std::string& syn = "S 0 mss 1000")
    {
        connect(syn);
        close();
        out("FA 1");
        const std::string ts = syn.find("ts") == std::string::npos ? "" : " ts 600 0";
        in("FA 1 ack 2" + ts);
        out("A 2 ack 2");
        ASSERT_EQ(tcp().state, TCP_STATE_TIME_WAIT);
    }
};

TEST_F(TcpTimeWait, BeginsAgainWithARepeatedFin)
{
    wait_from();
    pass(40000);
    in("FA 1 ack 2");
    out("A 2 ack 2");
    pass(40000);
    EXPECT_EQ(server.endpoint.connections, 1u);
    pass(21000);
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpTimeWait, IsNotProlongedByOtherSegments)
{
    wait_from();
    for (int i = 0; i < 6; ++i) {
        pass(9900);
        in(i % 2 ? "A 2 ack 2" : "PA 1:2 ack 2");
    }
    forget();
    pass(1000);
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpTimeWait, IsNotEndedByAReset)
{
    wait_from();
    in("R 2");
    nothing();
    EXPECT_EQ(server.endpoint.connections, 1u);
}

TEST_F(TcpTimeWait, EndsForALaterSyn)
{
    wait_from();
    const std::uint32_t before = initial;
    in("S 5000 mss 1000");
    out("SA 0 ack 5001");
    EXPECT_GT(static_cast<std::int32_t>(initial - before), 65536);
    in("A 5001 ack 1");
    EXPECT_EQ(counters().opened, 2u);
    EXPECT_EQ(counters().time_wait_reused, 1u);
    EXPECT_EQ(server.endpoint.connections, 1u);
}

TEST_F(TcpTimeWait, IsKeptFromAnEarlierSyn)
{
    wait_from();
    in("S -5000 mss 1000");
    out("A 2 ack 2");
    EXPECT_EQ(counters().time_wait_reused, 0u);
}

TEST_F(TcpTimeWait, EndsForASynWithALaterTimestamp)
{
    wait_from("S 0 mss 1000 ts 500 0");
    in("S -5000 mss 1000 ts 601 0");
    out("SA 0 ack -4999");
}

TEST_F(TcpTimeWait, IsKeptFromASynWithAnEarlierTimestamp)
{
    wait_from("S 0 mss 1000 ts 500 0");
    in("S 5000 mss 1000 ts 599 0");
    out("A 2 ack 2");
    EXPECT_EQ(counters().time_wait_reused, 0u);
}

class TcpTimestamps : public TcpStates {};

TEST_F(TcpTimestamps, AreEchoed)
{
    connect("S 0 mss 1000 ts 500 0");
    in("PA 1:101 ack 1 ts 510 0");
    out("A 1 ack 101 ts 0 510");
    in("PA 201:301 ack 1 ts 530 0"); // not in order: the echo stays that of what is acknowledged
    out("A 1 ack 101 ts 0 510");
    in("PA 101:201 ack 1 ts 520 0");
    out("A 1 ack 201 ts 0 520");
}

TEST_F(TcpTimestamps, ThatAreOldKeepOldSegmentsOut)
{
    connect("S 0 mss 1000 ts 500 0");
    in("PA 1:101 ack 1 ts 510 0");
    out("A 1 ack 101");
    in("PA 101:201 ack 1 ts 509 0"); // as one of 2^32 bytes ago would be
    out("A 1 ack 101 ts 0 510");
    EXPECT_EQ(server.session(id).received.size(), 100u);
    in("PA 101:201 ack 1"); // without the option (RFC 7323, 3.2)
    nothing();
    EXPECT_EQ(counters().old_timestamps, 2u);
    in("R 101"); // RST needs none
    EXPECT_TRUE(events() & TCP_EVENT_RESET);
}

TEST_F(TcpTimestamps, MayWrap)
{
    connect("S 0 mss 1000 ts -5 0");
    in("PA 1:101 ack 1 ts 3 0");
    out("A 1 ack 101 ts 0 3");
}

TEST_F(TcpTimestamps, TakeTwelveBytesOfASegment)
{
    connect("S 0 mss 1000 ts 500 0");
    queue(1000);
    out("A 1:989");
    out("PA 989:1001");
}

TEST_F(TcpStates, ReachesSequenceNumber0)
{
    peer_initial = 0xffffffc0;
    in("S 0 mss 1000");
    out("SA 0 ack 1");
    in("A 1 ack 1");
    id = server.last;
    in("PA 1:101 ack 1");
    out("A 1 ack 101");
    // The same for what is sent: as if the initial number had been 2^32 - 1500.
    const std::uint32_t moved = -1500u - initial;
    tcp_connection& it = tcp();
    for (weftio_u32* each : {&it.initial, &it.unacknowledged, &it.next_to_send, &it.highest, &it.end, &it.recover,
                             &it.window_acknowledgment})
        *each += moved;
    initial += moved;
    queue(5000);
    for (int i = 0; i < 4; ++i)
        out(fmt::format("A {}:{}", 1 + 1000 * i, 1001 + 1000 * i));
    out("PA 4001:5001");
    for (int i = 0; i < 4; ++i)
        in("A 101 ack 1001");
    out("A 1001:2001");
    in("FA 101 ack 5001");
    out("A 5001 ack 102");
    close();
    out("FA 5001");
    in("A 102 ack 5002");
    EXPECT_TRUE(events() & TCP_EVENT_CLOSED);
}

TEST_F(TcpStates, IdleConnectionsAreClosed)
{
    connect();
    pass(59000);
    nothing();
    in("PA 1:2 ack 1");
    out("A 1 ack 2");
    pass(59000);
    nothing();
    pass(1100);
    out("FA 1 ack 2");
    EXPECT_TRUE(events() & TCP_EVENT_IDLE);
    in("PA 2:12 ack 1"); // was under way; a response would come behind FIN
    out("A 2 ack 12");
    tcp_queue(&tcp(), 100, server.now());
    in("FA 12 ack 2");
    out("A 2 ack 13");
    EXPECT_EQ(counters().idle_closed, 1u);
    EXPECT_TRUE(events() & TCP_EVENT_CLOSED);
}

TEST_F(TcpStates, SilentPeersAreProbedAndReset)
{
    server.settings().idle = 0;
    server.settings().keep_alive = 100 * TCP_SECOND;
    connect();
    pass(99000);
    nothing();
    pass(2000);
    out("A 0 ack 1");
    in("A 1 ack 1");
    pass(99000);
    nothing();
    for (int probe = 0; probe < 8; ++probe) {
        pass(10100);
        out("A 0 ack 1");
    }
    pass(11000);
    out("RA 1");
    EXPECT_EQ(counters().keep_alive_probes, 9u);
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpStates, AbortSendsOneResetAndNoEvent)
{
    connect();
    queue(500);
    out("PA 1:501");
    server.abort(id);
    out("RA 501 ack 1");
    nothing();
    EXPECT_EQ(events() & TCP_EVENT_CLOSED, 0u);
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpStates, StrangersAreReset)
{
    in("A 7 ack 9");
    out("R 9");
    in("FA 7 ack 9");
    out("R 9");
    in("SA 7 ack 9");
    out("R 9");
    in("F 7:17");
    out("RA 0 ack 18");
    in("R 7");
    in("RA 7 ack 9");
    nothing();
}

} // namespace
} // namespace weftio::test
