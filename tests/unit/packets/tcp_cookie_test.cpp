// SipHash, initial sequence numbers, SYN cookies, and what a flood of SYNs leaves.
#include <random>

#include "tcp_script.hpp"

namespace weftio::test {
namespace {

/// SipHash-2-4 of bytes, written from the paper and not from the header.
std::uint64_t reference_siphash(std::uint64_t k0, std::uint64_t k1, const std::string& message)
{
    std::uint64_t v[4] = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                          k1 ^ 0x7465646279746573};
    auto left = [](std::uint64_t x, int b) { return x << b | x >> (64 - b); };
    auto half = [&](int a, int b, int s, int t) {
        v[a] += v[b];
        v[b] = left(v[b], s) ^ v[a];
        v[a] = t ? left(v[a], t) : v[a];
    };
    auto rounds = [&](int count) {
        while (count--) {
            half(0, 1, 13, 32);
            half(2, 3, 16, 0);
            half(0, 3, 21, 0);
            half(2, 1, 17, 32);
        }
    };
    for (std::size_t at = 0; at <= message.size(); at += 8) {
        std::uint64_t word = at + 8 > message.size() ? std::uint64_t{message.size()} << 56 : 0;
        for (std::size_t i = 0; i < 8 && at + i < message.size(); ++i)
            word |= std::uint64_t{static_cast<std::uint8_t>(message[at + i])} << 8 * i;
        v[3] ^= word;
        rounds(2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

constexpr std::uint64_t key0 = 0x0706050403020100, key1 = 0x0f0e0d0c0b0a0908;

TEST(TcpSiphash, IsTheOneOfThePaper)
{
    std::string message;
    for (char i = 0; i < 15; ++i)
        message += i;
    ASSERT_EQ(reference_siphash(key0, key1, message), 0xa129ca6149be45e5); // the paper's appendix A
    for (weftio_u32 count = 0; count <= 12; ++count) {
        std::string bytes;
        weftio_u32 words[12] = {};
        for (weftio_u32 i = 0; i < count * 4; ++i) {
            bytes += static_cast<char>(i);
            words[i / 4] |= i << 8 * (i % 4);
        }
        EXPECT_EQ(tcp_siphash(key0, key1, words, count, 2), reference_siphash(key0, key1, bytes)) << count;
    }
}

class TcpCookie : public tcp_script {
 protected:
    void flood(std::uint32_t count)
    {
        const std::uint16_t port = peer_port;
        for (std::uint32_t i = 0; i < count; ++i) {
            peer_port = static_cast<std::uint16_t>(1024 + i);
            in("S 0 mss 1460");
        }
        peer_port = port;
        forget();
    }
    TcpCookie() { server.settings().half_open_limit = 8; }
};

TEST_F(TcpCookie, AnswersWhenTooManyConnectionsAreHalfOpen)
{
    flood(100);
    EXPECT_EQ(server.endpoint.half_open, 8u);
    EXPECT_EQ(counters().cookies_sent, 92u);
}

TEST_F(TcpCookie, MakesAConnection)
{
    flood(8);
    in("S 0 mss 1400");
    out("SA 0 ack 1 win 16384 mss 1460 ws 255");
    in("PA 1:101 ack 1 win 3000");
    id = server.last;
    out("A 1 ack 101");
    EXPECT_EQ(tcp().mss, 1360);
    EXPECT_EQ(tcp().window, 3000u);
    queue(2000);
    out("A 1:1361");
    out("PA 1361:2001");
    EXPECT_EQ(counters().opened_by_cookie, 1u);
    EXPECT_EQ(server.endpoint.half_open, 8u);
}

TEST_F(TcpCookie, KeepsTheWindowScaleInTheTimestamp)
{
    flood(8);
    for (std::uint32_t scale = 0; scale <= 15; ++scale, ++peer_port) {
        in(scale == 15 ? std::string("S 0 mss 1460 ts 77 0") : fmt::format("S 0 mss 1460 ts 77 0 ws {}", scale));
        out(fmt::format("SA 0 ack 1 mss 1460 ws {} ts 0 77", scale == 15 ? 255 : 0));
        const std::uint32_t value = server.sent.back().segment.ts_value;
        in(fmt::format("A 1 ack 1 win 100 ts 78 {}", value));
        id = server.last;
        ASSERT_EQ(tcp().window, 100u << scale % 15) << scale;
        EXPECT_TRUE(tcp().flags & TCP_TIMESTAMPS);
        queue(10);
        out("PA 1:11 ts 0 78");
        EXPECT_FALSE(tcp_before(server.sent.back().segment.ts_value, value)) << "timestamps go backwards";
    }
}

TEST_F(TcpCookie, HoldsForOneToTwoPeriods)
{
    for (int seconds : {60, 150}) {
        flood(8);
        in("S 0 mss 1460");
        out("SA 0 ack 1");
        pass(static_cast<std::uint64_t>(seconds) * 1000);
        forget();
        in("A 1 ack 1");
        if (seconds == 60)
            nothing();
        else
            out("R 1");
        ++peer_port;
    }
    EXPECT_EQ(counters().opened_by_cookie, 1u);
}

TEST_F(TcpCookie, IsBoundToTheNameAndToTheSequenceNumber)
{
    flood(8);
    in("S 0 mss 1460");
    out("SA 0 ack 1");
    in("A 2 ack 1");
    out("R 1");
    ++peer_port;
    in("A 1 ack 1");
    out("R 1");
    --peer_port;
    ++addresses.peer[3];
    in("A 1 ack 1");
    out("R 1");
    --addresses.peer[3];
    for (int bit = 0; bit < 32; ++bit) {
        initial ^= 1u << bit;
        in("A 1 ack 1");
        out("R 1");
        initial ^= 1u << bit;
    }
    EXPECT_EQ(counters().cookies_failed, 35u);
    in("A 1 ack 1");
    nothing();
    EXPECT_EQ(counters().opened_by_cookie, 1u);
}

TEST_F(TcpCookie, IsWaitedForByDataThatHasOvertakenIt)
{
    flood(8);
    in("S 0 mss 1460");
    out("SA 0 ack 1");
    in("PA 101:201 ack 1");
    in("FA 201 ack 1");
    nothing();
    in("PA 1:101 ack 1");
    out("A 1 ack 101");
    EXPECT_EQ(counters().opened_by_cookie, 1u);
}

TEST_F(TcpCookie, IsNotTakenWhenNoneWasSentOfLate)
{
    flood(8);
    in("S 0 mss 1460");
    out("SA 0 ack 1");
    server.endpoint.cookie_sent = 0;
    in("A 1 ack 1");
    out("R 1");
    EXPECT_EQ(counters().cookies_failed, 0u);
}

TEST_F(TcpCookie, RoundsTheSegmentSizeDown)
{
    EXPECT_EQ(tcp_cookie_mss(tcp_cookie_mss_index(0)), 536u);
    EXPECT_EQ(tcp_cookie_mss(tcp_cookie_mss_index(1)), 48u);
    EXPECT_EQ(tcp_cookie_mss(tcp_cookie_mss_index(1459)), 1440u);
    EXPECT_EQ(tcp_cookie_mss(tcp_cookie_mss_index(1460)), 1460u);
    EXPECT_EQ(tcp_cookie_mss(tcp_cookie_mss_index(65535)), 8940u);
}

TEST_F(TcpCookie, HonorsAnMssOf48AndCountsALowerOne)
{
    flood(8);
    for (std::uint32_t mss : {48u, 47u}) {
        in(fmt::format("S 0 mss {}", mss));
        out("SA 0 ack 1");
        in("PA 1:101 ack 1 win 3000");
        id = server.last;
        EXPECT_EQ(tcp().mss, 48);
        EXPECT_EQ(counters().low_mss, 48 - mss);
        ++peer_port;
        forget();
    }
}

TEST_F(TcpCookie, ServesWhenEveryRecordIsInUse)
{
    server.settings().half_open_limit = 1000;
    flood(64);
    EXPECT_EQ(server.world().pool.in_use, 64u);
    in("S 0 mss 1460");
    out("SA 0 ack 1");
    EXPECT_EQ(counters().table_full, 1u);
    in("A 1 ack 1"); // no record for it either: dropped
    nothing();
    server.pass(70000); // half-open ones have expired
    forget();
    in("PA 1:101 ack 1"); // the cookie is still good
    out("A 1 ack 101");
}

TEST_F(TcpCookie, AMillionSynsLeaveAHonestClientServed)
{
    server = tcp_server(std::make_shared<tcp_world>(1024), 1024);
    server.settings().half_open_limit = 256;
    std::mt19937 random(11);
    const tcp_addresses honest = addresses;
    for (int i = 1; i <= 1'000'000; ++i) {
        addresses.peer[3] = static_cast<std::uint32_t>(random());
        peer_port = static_cast<std::uint16_t>(random());
        peer_initial = static_cast<std::uint32_t>(random());
        in("S 0 mss 1460");
        server.now_ns += 10'000; // 100,000 a second
        if (i % 100 == 0)
            server.run();
        ASSERT_LE(server.endpoint.half_open, 256u);
        if (i % 100'000 == 0) {
            forget();
            addresses = honest;
            peer_port = static_cast<std::uint16_t>(i / 100'000);
            in("S 0 mss 1460");
            out("SA 0 ack 1");
            in("PA 1:101 ack 1");
            out("A 1 ack 101");
            id = server.last;
            queue(100);
            out("PA 1:101");
            in("A 101 ack 101");
        }
        forget();
    }
    EXPECT_EQ(counters().opened, 10u);
    EXPECT_LE(server.world().pool.used_once, 256u + 10u);
}

TEST(TcpInitialSequence, GrowsWithTimeAndDiffersByName)
{
    tcp_world world;
    tcp_addresses a = {{0, 0, 0xffff, 1}, {0, 0, 0xffff, 2}}, b = a;
    b.peer[3] = 3;
    const weftio_u32 first = tcp_initial_sequence(&world.settings, &a, 7, 1'000'000'000);
    EXPECT_EQ(tcp_initial_sequence(&world.settings, &a, 7, 1'000'000'000 + 4096) - first, 1u);
    EXPECT_NE(tcp_initial_sequence(&world.settings, &b, 7, 1'000'000'000), first);
    EXPECT_NE(tcp_initial_sequence(&world.settings, &a, 8, 1'000'000'000), first);
    world.settings.key[1] ^= 1;
    EXPECT_NE(tcp_initial_sequence(&world.settings, &a, 7, 1'000'000'000), first);
}

} // namespace
} // namespace weftio::test
