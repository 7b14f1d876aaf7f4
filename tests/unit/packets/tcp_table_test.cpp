// Records, lists and the wheel: limits, sharing by blocks, and a send ring without room.
#include <random>
#include <set>
#include <thread>

#include "tcp_script.hpp"

namespace weftio::test {
namespace {

class TcpTable : public tcp_script {
 protected:
    /// A connection from this port, established.
    std::uint32_t connect_from(std::uint16_t port)
    {
        peer_port = port;
        connect();
        return id;
    }
};

TEST_F(TcpTable, KeepsConnectionsApart)
{
    std::set<std::uint32_t> numbers;
    for (std::uint16_t port = 1; port <= 30; ++port)
        numbers.insert(connect_from(port));
    ++addresses.own[3];
    numbers.insert(connect_from(1));
    --addresses.own[3];
    own_port = 8080;
    numbers.insert(connect_from(1));
    addresses.peer[0] = 0x20010db8; // IPv6
    numbers.insert(connect_from(1));
    EXPECT_EQ(numbers.size(), 33u);
    EXPECT_EQ(server.endpoint.connections, 33u);
}

TEST_F(TcpTable, TellsPeersOfIpv6AShorterSegment)
{
    addresses = {{0x20010db8, 0, 0, 1}, {0x20010db8, 0, 0, 2}};
    in("S 0");
    out("SA 0 mss 1440");
    addresses = {{0, 0, 0xffff, 1}, {0, 0, 0xffff, 2}};
    in("S 0");
    out("SA 0 mss 1460");
}

TEST_F(TcpTable, NeverSendsLongerSegmentsThanThePathTakesNorSillyOnes)
{
    for (const auto& [asked, sent] : std::vector<std::pair<int, int>>{{9000, 1460}, {536, 536}, {1, 48}, {0, 536}}) {
        ++peer_port;
        in(asked ? fmt::format("S 0 mss {}", asked) : std::string("S 0"));
        out("SA 0");
        in("A 1 ack 1");
        id = server.last;
        EXPECT_EQ(tcp().mss, sent);
    }
}

TEST_F(TcpTable, GivesUpTimeWaitForNewConnectionsOldestFirst)
{
    std::vector<std::uint32_t> initials(1);
    for (std::uint16_t port = 1; port <= 64; ++port) {
        connect_from(port);
        initials.push_back(initial);
        close();
        in("FA 1 ack 2");
        forget();
    }
    EXPECT_EQ(server.world().pool.in_use, 64u);
    connect_from(100);
    EXPECT_EQ(counters().time_wait_evicted, 1u);
    peer_port = 1; // the oldest has gone: its late segment is a stranger's
    in("A 2 ack 2");
    out("R 2");
    peer_port = 2;
    initial = initials[2];
    in("FA 1 ack 2");
    out("A 2 ack 2");
}

TEST_F(TcpTable, EndsTimeWaitInTheOrderOfItsBeginAndNotByAReset)
{
    for (std::uint16_t port : {std::uint16_t{2}, std::uint16_t{1}}) {
        connect_from(port);
        close();
        in("FA 1 ack 2");
        forget();
        server.pass(port == 2 ? 30000 : 0);
    }
    peer_port = 2;
    in("PA 1:2 ack 2"); // late data does not move it behind the other
    in("R 2");
    server.pass(29000);
    EXPECT_EQ(server.endpoint.connections, 2u);
    server.pass(2000);
    EXPECT_EQ(server.endpoint.connections, 1u);
    forget();
}

TEST_F(TcpTable, UsesRecordsAgainAndAgain)
{
    for (int i = 0; i < 1000; ++i) {
        connect_from(static_cast<std::uint16_t>(i));
        in("FA 1 ack 1");
        close();
        in("A 2 ack 2");
        forget();
        ASSERT_EQ(server.endpoint.connections, 0u);
    }
    EXPECT_EQ(server.world().pool.used_once, 1u);
    EXPECT_EQ(counters().closed, 1000u);
}

TEST_F(TcpTable, BoundsABucketThatManyNamesShare)
{
    server = tcp_server(std::make_shared<tcp_world>(1000), 1);
    for (std::uint16_t port = 0; port < 200; ++port) {
        peer_port = port;
        in("S 0 mss 1000");
    }
    EXPECT_EQ(server.endpoint.connections, std::uint32_t{TCP_CHAIN_LIMIT});
    EXPECT_EQ(counters().cookies_sent, 200u - TCP_CHAIN_LIMIT);
    forget();
}

TEST_F(TcpTable, ComesBackWithWhatTheRingHadNoRoomFor)
{
    connect();
    server.room = 2;
    queue(5000);
    out("A 1:1001");
    out("A 1001:2001");
    nothing();
    server.run(); // still no room
    nothing();
    server.room = 1;
    server.run();
    out("A 2001:3001");
    server.room = 100;
    server.run();
    out("A 3001:4001");
    out("PA 4001:5001");
    nothing();
}

TEST_F(TcpTable, ServesThoseThatWaitForRoomOneAfterTheOther)
{
    std::vector<std::uint32_t> waiting;
    for (std::uint16_t port = 1; port <= 3; ++port) {
        waiting.push_back(connect_from(port));
        server.room = 0;
        queue(3000);
        server.room = ~0u;
    }
    forget();
    std::vector<int> order;
    for (int i = 0; i < 9; ++i) {
        server.room = 1;
        server.run(1);
    }
    for (const tcp_message& message : server.sent)
        order.push_back(message.segment.destination_port);
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
    forget();
}

TEST_F(TcpTable, AResetThatHadNoRoomIsSentBeforeTheRecordIsFree)
{
    connect();
    queue(500);
    out("PA 1:501");
    server.room = 0;
    server.abort(id);
    EXPECT_EQ(server.endpoint.connections, 1u);
    in("PA 1:101 ack 501"); // nobody is there to take it
    EXPECT_EQ(server.session(id).received, "");
    EXPECT_EQ(server.session(id).acknowledged, 0u);
    server.room = 10;
    server.run();
    out("RA 501");
    EXPECT_EQ(server.endpoint.connections, 0u);
}

TEST_F(TcpTable, CatchesUpAfterALongPause)
{
    connect();
    queue(100);
    out("PA 1:101");
    server.now_ns += 30'000'000'000; // no call for 30 s: seven rounds of the wheel
    for (std::uint32_t slots = 0; slots <= TCP_WHEEL_SLOTS; slots += 64)
        server.run();
    out("PA 1:101");
    nothing();
    EXPECT_EQ(server.endpoint.wheel, server.now());
}

TEST_F(TcpTable, LooksAtEachDeadlineInTime)
{
    // Deadlines of all lengths, some of which come nearer after they were set.
    std::mt19937 random(5);
    for (std::uint16_t port = 1; port <= 60; ++port)
        connect_from(port);
    forget();
    for (int round = 0; round < 300; ++round) {
        const auto number = static_cast<std::uint32_t>(1 + random() % 60);
        tcp_connection& each = server.connection(number);
        each.flags |= TCP_TIMER;
        each.deadline = server.now() + 1 + static_cast<std::uint32_t>(random() % (random() % 2 ? 20000 : 300));
        tcp_done(&server.endpoint, number, 0, server.now());
        server.pass(random() % 100);
        for (std::uint32_t at = 1; at <= 60; ++at) {
            const tcp_connection& other = server.connection(at);
            ASSERT_FALSE((other.flags & TCP_TIMER) && tcp_before(other.deadline, server.now())) << at;
        }
        ASSERT_EQ(server.inconsistency(), "");
    }
}

TEST(TcpPool, IsSharedByBlocks)
{
    auto world = std::make_shared<tcp_world>(500);
    std::vector<tcp_server> servers;
    for (int block = 0; block < 4; ++block)
        servers.emplace_back(world, 16);
    std::vector<std::thread> threads;
    for (std::uint32_t block = 0; block < 4; ++block) {
        threads.emplace_back([&server = servers[block], block] {
            std::mt19937 random(block);
            const tcp_addresses addresses = {{0, 0, 0xffff, block}, {0, 0, 0xffff, 9}};
            std::vector<std::uint32_t> mine;
            for (int i = 0; i < 20000; ++i) {
                if (mine.size() < 200 && random() % 2) {
                    const auto made = tcp_make(&server.endpoint, &addresses, static_cast<std::uint32_t>(i));
                    if (made != TCP_NONE)
                        mine.push_back(made);
                } else if (!mine.empty()) {
                    std::swap(mine[random() % mine.size()], mine.back());
                    tcp_free(&server.endpoint, mine.back());
                    mine.pop_back();
                }
            }
            while (!mine.empty()) {
                tcp_free(&server.endpoint, mine.back());
                mine.pop_back();
            }
        });
    }
    for (std::thread& each : threads)
        each.join();
    EXPECT_EQ(world->pool.in_use, 0u);
    EXPECT_LE(world->pool.used_once, 500u);
    std::set<std::uint32_t> free;
    for (std::uint32_t at = world->pool.first_free; at != TCP_NONE; at = world->records[at - 1].tcp.next)
        ASSERT_TRUE(free.insert(at).second);
    EXPECT_EQ(free.size(), world->pool.used_once);
}

} // namespace
} // namespace weftio::test
