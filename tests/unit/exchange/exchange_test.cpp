// Two ends of a TCP exchange, and peers that are none.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

#include "exchange_ends.hpp"

namespace weftio::test {

namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

} // namespace

TEST_F(TcpExchange, SwapsBytesOfAnyNumber)
{
    connect();
    for (const std::size_t left : {std::size_t{0}, std::size_t{1}, std::size_t{70000}, tcp_exchange::most_bytes})
        for (const std::size_t right : {std::size_t{0}, std::size_t{9}, tcp_exchange::most_bytes})
            at_both([&](tcp_exchange& end) { EXPECT_EQ(end.swap(numbered(left)), numbered(right)); },
                    [&](tcp_exchange& end) { EXPECT_EQ(end.swap(numbered(right)), numbered(left)); });
    EXPECT_TRUE(ends[0].connected());
}

TEST_F(TcpExchange, SwapsWhatQueuePairsNeed)
{
    connect();
    const rdma_address address = rdma_address::of({.address = "10.0.0.1", .queue = 17, .first_psn = 1}),
                       other_address = rdma_address::of({.address = "fd00::2", .queue = 18, .first_psn = 2});
    const remote_region region{.address = 0x1000, .bytes = 64, .rkey = 0x100},
        other{.address = 0x2000, .bytes = 128, .rkey = 0x200};
    const std::vector<remote_region> some{region, other}, none;
    at_both(
        [&](tcp_exchange& end) {
            EXPECT_EQ(end.swap(address), other_address);
            EXPECT_EQ(end.swap(region), other);
            EXPECT_EQ(end.swap(some), none);
            end.meet();
            expect_error(errc::invalid_argument, "do not begin with \"WFQP\"", [&] { (void)end.swap(address); });
        },
        [&](tcp_exchange& end) {
            EXPECT_EQ(end.swap(other_address), address);
            EXPECT_EQ(end.swap(other), region);
            EXPECT_EQ(end.swap(none), some);
            end.meet();
            expect_error(errc::invalid_argument, "do not begin with \"WFRM\"", [&] { (void)end.swap(some); });
        });
    swap_works(ends[0], ends[1]);
}

TEST_F(TcpExchange, SendsAndReceivesAtOnce)
{
    raw_peer peer(listener.port(), 4096);
    tcp_exchange end = accept_from(peer, "");
    give_little_room();
    auto ours = std::async(std::launch::async, [&] { return end.swap(numbered(tcp_exchange::most_bytes)); });
    const auto bytes = static_cast<std::uint32_t>(tcp_exchange::most_bytes);
    peer.say(message("SWAP", bytes) + std::string(bytes, 'x')); // blocks until all of it has room
    EXPECT_EQ(peer.hear(16), hello('l'));
    EXPECT_EQ(peer.hear(8), message("SWAP", bytes));
    EXPECT_EQ(peer.hear(bytes).size(), bytes);
    EXPECT_EQ(ours.get(), blob(bytes, 'x'));
}

TEST_F(TcpExchange, MeetsWhenBothAreThere)
{
    connect();
    for (int round = 0; round < 100; ++round) {
        std::atomic<int> there = 0;
        const auto come = [&](tcp_exchange& end) {
            ++there;
            end.meet();
            EXPECT_EQ(there, 2);
        };
        at_both(come, come);
    }
}

TEST_F(TcpExchange, TakesAMessageThatComesInPieces)
{
    raw_peer peer(listener.port());
    auto accepted = std::async(std::launch::async, [&] { return listener.accept(patient); });
    for (const char letter : hello('c'))
        peer.say({&letter, 1});
    tcp_exchange end = accepted.get();
    auto theirs = std::async(std::launch::async, [&] { return end.swap(numbered(2)); });
    for (const char letter : message("SWAP", 3) + "abc")
        peer.say({&letter, 1});
    EXPECT_EQ(theirs.get(), (blob{'a', 'b', 'c'}));
    EXPECT_EQ(peer.hear(26), hello('l') + message("SWAP", 2) + "\1\2");
}

TEST_F(TcpExchange, RefusesToSwapWithAPeerThatMeets)
{
    connect();
    at_both(
        [](tcp_exchange& end) {
            expect_error(errc::invalid_argument, "the peer is in its meet(); make the same calls",
                         [&] { (void)end.swap(numbered(4)); });
        },
        [](tcp_exchange& end) { EXPECT_THROW(end.meet(), error); });
    EXPECT_FALSE(ends[0].connected());
    expect_error(errc::closed, "an earlier call failed", [&] { ends[0].meet(); });
}

TEST_F(TcpExchange, RefusesMoreBytesThanOneCallTakes)
{
    connect();
    expect_error(errc::invalid_argument, "1048577 bytes exceed the 1048576 of one swap()",
                 [&] { (void)ends[0].swap(blob(tcp_exchange::most_bytes + 1)); });
    swap_works(ends[0], ends[1]);
}

TEST_F(TcpExchange, RefusesWhatNoExchangeSends)
{
    for (const std::string& words :
         {std::string("GET / HTTP/1.1\r\n\r\n"), message("SWAP", tcp_exchange::most_bytes + 1), message("SWAP", ~0u),
          message("MEET", 1), std::string(8, '\0')}) {
        raw_peer peer(listener.port());
        tcp_exchange end = accept_from(peer, words);
        expect_error(errc::invalid_argument, "which no tcp_exchange sends", [&] { (void)end.swap(numbered(1)); });
        EXPECT_EQ(peer.hear(100).size(), 16u + 9u) << "and closes";
    }
}

TEST_F(TcpExchange, TellsThatThePeerHasGone)
{
    const std::string announced = message("SWAP", 100);
    for (const std::string& words : {std::string(), announced.substr(0, 3), announced, announced + "abc"}) {
        raw_peer peer(listener.port());
        tcp_exchange end = accept_from(peer, words);
        EXPECT_TRUE(end.connected());
        EXPECT_EQ(peer.hear(16), hello('l'));
        peer.close();
        while (end.connected())
            std::this_thread::yield();
        expect_error(errc::closed, "the peer closed the connection; check the peer",
                     [&] { (void)end.swap(numbered(4)); });
    }
}

TEST_F(TcpExchange, RaisesNoSignalWhenThePeerTakesNoMore)
{
    raw_peer peer(listener.port());
    tcp_exchange end = accept_from(peer, message("SWAP", 3) + "abc");
    give_little_room();
    EXPECT_EQ(peer.hear(16), hello('l'));
    peer.close();
    while (end.connected())
        std::this_thread::yield();
    expect_error(errc::closed, "the connection is lost: Broken pipe",
                 [&] { (void)end.swap(blob(tcp_exchange::most_bytes)); });
}

TEST_F(TcpExchange, TellsThatTheConnectionIsLost)
{
    raw_peer peer(listener.port());
    tcp_exchange end = accept_from(peer, message("SWAP", 3) + "abc");
    EXPECT_EQ(peer.hear(16), hello('l'));
    peer.abort();
    while (end.connected())
        std::this_thread::yield();
    expect_error(errc::closed, "the connection is lost: ", [&] { (void)end.swap(blob(tcp_exchange::most_bytes)); });
}

TEST_F(TcpExchange, WaitsForASilentPeerAsLongAsItShall)
{
    raw_peer peer(listener.port());
    tcp_exchange end = accept_from(peer, message("SWAP", 100) + "abc", hasty);
    expect_error(errc::timed_out,
                 "the peer has sent 11 bytes and received 12 of our 12 " + hasty_text + "; check whether it",
                 [&] { (void)end.swap(numbered(4)); });
    EXPECT_FALSE(end.connected());
}

TEST_F(TcpExchange, EndsAWaitWhenTheApplicationSaysSo)
{
    int asked = 0;
    const exchange_options stopped{.timeout = milliseconds(0), .stop = [&] { return ++asked == 3; }};
    const char* const words = "the application canceled the wait";
    expect_error(errc::closed, words, [&] { (void)listener.accept(stopped); });
    asked = 0;
    raw_peer peer(listener.port());
    expect_error(errc::closed, words, [&] { (void)tcp_exchange::connect("127.0.0.1:1", stopped); });
    asked = -1000; // not yet
    tcp_exchange end = accept_from(peer, "", stopped);
    asked = 0;
    expect_error(errc::closed, words, [&] { end.meet(); });
}

TEST_F(TcpExchange, GoesOnAfterASignal)
{
    static std::atomic<int> signals;
    signals = 0;
    struct sigaction counting {
    }, before{};
    counting.sa_handler = [](int) { ++signals; };
    sigaction(SIGUSR1, &counting, &before);
    connect();
    std::promise<pthread_t> thread;
    auto theirs = std::async(std::launch::async, [&] {
        thread.set_value(pthread_self());
        return ends[1].swap(numbered(1));
    });
    const pthread_t waiting = thread.get_future().get();
    while (signals < 20 && theirs.wait_for(milliseconds(1)) == std::future_status::timeout)
        pthread_kill(waiting, SIGUSR1);
    EXPECT_EQ(ends[0].swap(numbered(2)), numbered(1));
    EXPECT_EQ(theirs.get(), numbered(2));
    sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(TcpExchange, KnowsWhenItHasBeenMovedFrom)
{
    connect();
    tcp_exchange moved = std::move(ends[0]);
    EXPECT_FALSE(ends[0].connected());
    expect_error(errc::closed, "it was moved from", [&] { ends[0].meet(); });
    swap_works(moved, ends[1]);
    tcp_listener other = std::move(listener);
    EXPECT_EQ(listener.port(), 0);
    expect_error(errc::closed, "it was moved from", [&] { (void)listener.accept(hasty); });
}

TEST_F(TcpExchange, TellsWhoThePeerIs)
{
    connect();
    EXPECT_EQ(ends[0].peer(), where);
    EXPECT_THAT(ends[1].peer(), testing::StartsWith("127.0.0.1:"));
}

TEST_F(TcpExchange, ClosesItsSocketsOnExec)
{
    int ours = 0;
    const auto look = [&](int descriptor) {
        ++ours;
        EXPECT_TRUE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
    };
    raw_peer peer(listener.port());
    const tcp_exchange accepted = accept_from(peer, "");
    for_each_socket(look);
    EXPECT_EQ(ours, 2) << "the listener and an end";
}

} // namespace weftio::test
