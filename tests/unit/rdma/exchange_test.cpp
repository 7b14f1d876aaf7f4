// Two ends of a TCP exchange, and peers that are none.
#include "weftio/exchange.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <future>
#include <numeric>
#include <thread>

#include "public_pair.hpp"
#include "raw_peer.hpp"

namespace weftio::test {

namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using blob = std::vector<std::uint8_t>;

const exchange_options patient{.timeout = std::chrono::minutes(1)}, hasty{.timeout = milliseconds(200)};

blob numbered(std::size_t bytes)
{
    blob made(bytes);
    std::iota(made.begin(), made.end(), std::uint8_t{1});
    return made;
}

void expect_error(errc code, const std::string& words, const std::function<void()>& call)
{
    const error thrown = error_of(call);
    EXPECT_EQ(thrown.code(), code) << thrown.what();
    EXPECT_THAT(thrown.what(), HasSubstr(words));
    EXPECT_THAT(thrown.what(), testing::Not(HasSubstr("\n")));
}

/// A listener, and two ends that are connected through it.
class TcpExchange : public testing::Test {
 protected:
    void connect(const exchange_options& options = patient)
    {
        auto accepted = std::async(std::launch::async, [&] { return listener.accept(options); });
        ends.push_back(tcp_exchange::connect(where, options));
        ends.push_back(accepted.get());
    }
    /// Runs both calls at once.
    template <class Left, class Right>
    void at_both(Left&& left, Right&& right)
    {
        auto other = std::async(std::launch::async, [&] { right(ends[1]); });
        left(ends[0]);
        other.get();
    }
    void swap_works(tcp_exchange& a, tcp_exchange& b)
    {
        auto other = std::async(std::launch::async, [&] { return b.swap(numbered(5)); });
        EXPECT_EQ(a.swap(numbered(3)), numbered(5));
        EXPECT_EQ(other.get(), numbered(3));
    }
    /// An end whose peer says these words behind its hello.
    tcp_exchange accept_from(raw_peer& peer, const std::string& words, const exchange_options& options = patient)
    {
        peer.say(hello('c') + words);
        return listener.accept(options);
    }

    /// Does that to every socket at the listener's port, the listening one too.
    void for_each_socket(const std::function<void(int descriptor)>& does)
    {
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            const int descriptor = std::stoi(entry.path().filename());
            sockaddr_in at{};
            socklen_t bytes = sizeof(at);
            if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&at), &bytes) == 0 && at.sin_family == AF_INET &&
                ntohs(at.sin_port) == listener.port())
                does(descriptor);
        }
    }

    /// So that a long message takes several sends: Linux has room for megabytes else.
    void give_little_room()
    {
        for_each_socket([](int descriptor) {
            const int bytes = 4096;
            setsockopt(descriptor, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        });
    }

    tcp_listener listener{"127.0.0.1:0"};
    const std::string where = "127.0.0.1:" + std::to_string(listener.port());
    std::vector<tcp_exchange> ends;
};

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
    public_pair pair{places_of_ends[0]};
    connect();
    const remote_region region = remote_region::of(pair.memory(0).region),
                        other = remote_region::of(pair.memory(1).region);
    const std::vector<remote_region> some{region, other}, none;
    at_both(
        [&](tcp_exchange& end) {
            EXPECT_EQ(end.swap(pair.queue(0).address()), pair.queue(1).address());
            EXPECT_EQ(end.swap(region), other);
            EXPECT_EQ(end.swap(some), none);
            end.meet();
            expect_error(errc::invalid_argument, "do not begin with \"WFQP\"",
                         [&] { (void)end.swap(pair.queue(0).address()); });
        },
        [&](tcp_exchange& end) {
            EXPECT_EQ(end.swap(pair.queue(1).address()), pair.queue(0).address());
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
            expect_error(errc::invalid_argument, "the peer is in its meet(); let both ends make the same calls",
                         [&] { (void)end.swap(numbered(4)); });
        },
        [](tcp_exchange& end) { EXPECT_THROW(end.meet(), error); });
    EXPECT_FALSE(ends[0].connected());
    expect_error(errc::closed, "an earlier call has failed", [&] { ends[0].meet(); });
}

TEST_F(TcpExchange, RefusesMoreBytesThanOneCallTakes)
{
    connect();
    expect_error(errc::invalid_argument, "1048577 bytes are more than the 1048576 of one swap()",
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
        expect_error(errc::invalid_argument, "which no tcp_exchange does", [&] { (void)end.swap(numbered(1)); });
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
        expect_error(errc::closed, "the peer has closed the connection; look at the peer",
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
    expect_error(errc::timed_out, "the peer has sent 11 bytes, and taken 12 of our 12, within 200 ms; look whether it",
                 [&] { (void)end.swap(numbered(4)); });
    EXPECT_FALSE(end.connected());
}

TEST_F(TcpExchange, EndsAWaitWhenTheApplicationSaysSo)
{
    int asked = 0;
    const exchange_options stopped{.timeout = milliseconds(0), .stop = [&] { return ++asked == 3; }};
    const char* const words = "the application has ended the wait";
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

// Who else connects to a listener.

TEST_F(TcpExchange, IsReachedPastStrangers)
{
    std::vector<raw_peer> strangers;
    for (int each = 0; each < 20; ++each) // more than it asks at a time
        strangers.emplace_back(listener.port());
    for (const std::string& words : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string("\x16\x03\x01"),
                                     hello('c').substr(0, 15), hello('l'), hello('c', 0)})
        strangers.emplace_back(listener.port()).say(words);
    raw_peer(listener.port()).close();
    raw_peer(listener.port()).abort();
    raw_peer(listener.port()).say(hello('c')).close(); // a peer that has given up
    raw_peer(listener.port()).say(hello('c')).abort();
    connect();
    swap_works(ends[0], ends[1]);
}

TEST_F(TcpExchange, TellsAPeerOfAnotherVersionItsOwn)
{
    raw_peer peer(listener.port());
    peer.say(hello('c', 2));
    expect_error(errc::timed_out, "no peer came, though 1 others did", [&] { (void)listener.accept(hasty); });
    EXPECT_EQ(peer.hear(100), hello('l')) << "and then the end";
}

TEST_F(TcpExchange, TellsWhoCameInsteadOfAPeer)
{
    expect_error(errc::timed_out, "no peer came within 200 ms; start the peer", [&] { (void)listener.accept(hasty); });
    raw_peer peer(listener.port());
    peer.say("GET / HTTP/1.1\r\n\r\n");
    raw_peer silent(listener.port());
    const error thrown = error_of([&] { (void)listener.accept(hasty); });
    EXPECT_THAT(thrown.what(), HasSubstr("no peer came, though 2 others did (the last that was refused: 127.0.0.1:"));
    EXPECT_THAT(thrown.what(), HasSubstr("\"GET / HTTP/1.1\\x0d\\n\") within 200 ms"));
    EXPECT_EQ(peer.hear(100), "") << "and closes";
}

TEST_F(TcpExchange, ServesPeersOneAfterTheOther)
{
    std::vector<std::future<tcp_exchange>> peers;
    for (int each = 0; each < 4; ++each)
        peers.push_back(std::async(std::launch::async, [&] { return tcp_exchange::connect(where, patient); }));
    std::vector<tcp_exchange> here;
    for (int each = 0; each < 4; ++each)
        here.push_back(listener.accept(patient));
    std::vector<std::future<blob>> heard;
    for (auto& peer : peers)
        heard.push_back(std::async(std::launch::async, [&peer] { return peer.get().swap(numbered(7)); }));
    for (auto& each : here)
        EXPECT_EQ(each.swap(numbered(1)), numbered(7));
    for (auto& each : heard)
        EXPECT_EQ(each.get(), numbered(1));
}

TEST_F(TcpExchange, KeepsWhoHasComeForTheNextAccept)
{
    raw_peer one(listener.port()), other(listener.port());
    one.say(hello('c') + message("MEET", 0));
    other.say(hello('c') + message("MEET", 0));
    for (int each = 0; each < 2; ++each)
        listener.accept(patient).meet();
    EXPECT_EQ(one.hear(100), hello('l') + message("MEET", 0));
    EXPECT_EQ(other.hear(100), hello('l') + message("MEET", 0));
}

TEST_F(TcpExchange, ListensAtAPortWhoseConnectionsAreEnding)
{
    connect();
    ends.pop_back(); // who closes first keeps the port for a minute, by the rules of TCP
    ends.clear();
    {
        const tcp_listener closed = std::move(listener);
    }
    EXPECT_EQ("127.0.0.1:" + std::to_string(tcp_listener(where).port()), where);
}

// Whom connect() may find.

TEST_F(TcpExchange, ConnectsOnceThePeerListens)
{
    tcp_listener later("127.0.0.1:0");
    const std::string there = "127.0.0.1:" + std::to_string(later.port());
    {
        const tcp_listener closed = std::move(later);
    }
    auto connected = std::async(std::launch::async, [&] { return tcp_exchange::connect(there, patient); });
    EXPECT_EQ(connected.wait_for(milliseconds(300)), std::future_status::timeout) << "nobody listens";
    tcp_exchange end = tcp_exchange::listen(there, patient);
    tcp_exchange peer = connected.get();
    swap_works(end, peer);
}

TEST_F(TcpExchange, TriesAgainWhenAListenerEndsBeforeItAccepts)
{
    raw_listener peer;
    auto connected = std::async(std::launch::async, [&] { return tcp_exchange::connect(peer.where, patient); });
    peer.accept().close();
    peer.accept().abort();
    raw_peer echo = peer.accept(); // so it looks when TCP has connected a port to itself
    echo.say(echo.hear(16));
    raw_peer third = peer.accept();
    third.say(hello('l') + message("MEET", 0));
    connected.get().meet();
    EXPECT_EQ(third.hear(100), hello('c') + message("MEET", 0));
}

TEST_F(TcpExchange, SaysWhyNobodyAcceptsIt)
{
    const auto refused = [](const std::string& where, const std::string& why) {
        expect_error(errc::timed_out,
                     "weftio: tcp_exchange: connecting to " + where + ": no peer accepts us (" + why +
                         ") within 200 ms; start the peer's tcp_listener",
                     [&] { (void)tcp_exchange::connect(where, hasty); });
    };
    raw_listener silent;
    refused(silent.where, "it takes the connection and stays silent");
    refused("127.0.0.1:1", "Connection refused");
}

TEST_F(TcpExchange, RefusesAServiceOfAnotherKind)
{
    const auto refused = [](const std::string& words, const std::string& why) {
        raw_listener service;
        auto says = std::async(std::launch::async, [&] { service.accept().say(words).hear(1000); });
        expect_error(errc::invalid_argument, why, [&] { (void)tcp_exchange::connect(service.where, patient); });
        says.get();
    };
    refused("220 x\r\n", "who listens there is no tcp_exchange: it says \"220 x\\x0d\\n\"");
    refused("HTTP/1.1 400 Bad Request\r\n", "no tcp_exchange: it says \"HTTP/1.1 400 Bad\"");
    refused(hello('l', 2), "the peer is of version 2, and this library of version 1");
}

// What users name.

TEST_F(TcpExchange, HasIpv6AndIpv4)
{
    tcp_listener both("0");
    for (const std::string& host : {std::string("127.0.0.1"), std::string("[::1]"), std::string("localhost")}) {
        auto accepted = std::async(std::launch::async, [&] { return both.accept(patient); });
        tcp_exchange end = tcp_exchange::connect(host + ":" + std::to_string(both.port()), patient);
        tcp_exchange peer = accepted.get();
        swap_works(end, peer);
        EXPECT_THAT(peer.peer(), testing::AnyOf(testing::StartsWith("127.0.0.1:"), testing::StartsWith("[::1]:")));
    }
    const tcp_listener ipv6("[::1]:0");
    expect_error(errc::timed_out, "Connection refused",
                 [&] { (void)tcp_exchange::connect("127.0.0.1:" + std::to_string(ipv6.port()), hasty); });
}

TEST_F(TcpExchange, RefusesAPlaceWhereItCannotListen)
{
    expect_error(errc::in_use, "weftio: tcp_listener: " + where + ": Address already in use; end who has the port",
                 [&] { tcp_listener other(where); });
    expect_error(errc::in_use, "already in use", [&] { tcp_listener other(std::to_string(listener.port())); });
    expect_error(errc::not_found, "name an address that an interface of this host has",
                 [] { tcp_listener other("192.0.2.1:0"); });
    for (const char* const host : {"no-such-host.invalid", "10.0.0.300"}) {
        const std::string words = "host \"" + std::string(host) + "\" has no address (";
        expect_error(errc::not_found, words, [&] { tcp_listener other(host + std::string(":1")); });
        expect_error(errc::not_found, words, [&] { (void)tcp_exchange::connect(host + std::string(":1"), patient); });
    }
}

TEST_F(TcpExchange, RefusesWhatIsNoPlace)
{
    for (const char* const text : {"", "x", "1x", "-1", "65536", "000001", "host:", "host:x", "host:1:2",
                                   "fd00::1:18515", "[fd00::1]", "[]:1", "[x:1"})
        expect_error(errc::invalid_argument,
                     "weftio: tcp_listener: \"" + std::string(text) + "\": ", [&] { tcp_listener other(text); });
    for (const char* const text :
         {"", "18515", ":18515", "host:0", "host:", "host:ssh", "fd00::1:18515", "[fd00::1]18515"})
        expect_error(errc::invalid_argument, "weftio: tcp_exchange: \"" + std::string(text) + "\": ", [&] {
            (void)tcp_exchange::connect(text, patient);
        });
    expect_error(errc::invalid_argument, "a timeout of -1 ms; name the milliseconds",
                 [&] { (void)listener.accept({.timeout = milliseconds(-1)}); });
    expect_error(errc::invalid_argument, "a timeout of -1 ms",
                 [&] { (void)tcp_exchange::connect(where, {.timeout = milliseconds(-1)}); });
}

} // namespace weftio::test
