// Who comes to a TCP listener, and what a client meets that looks for one.
#include <sys/resource.h>

#include <atomic>
#include <thread>

#include "exchange_ends.hpp"

namespace weftio::test {

namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

} // namespace

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

TEST_F(TcpExchange, DropsTheOldestOfManySilentClients)
{
    std::vector<raw_peer> silent;
    for (int each = 0; each < 17; ++each) // it keeps 16
        silent.emplace_back(listener.port());
    expect_error(errc::timed_out, "no peer connected, but 17 other clients connected (last one rejected: 127.0.0.1:",
                 [&] { (void)listener.accept(hasty); });
    EXPECT_EQ(silent.front().hear(1), "") << "and closes";
}

TEST_F(TcpExchange, IsReachedPastStrangersWhenFewFilesMayBeOpen)
{
    std::vector<raw_peer> strangers;
    for (int each = 0; each < 12; ++each)
        strangers.emplace_back(listener.port());
    raw_peer peer(listener.port());
    peer.say(hello('c'));
    const int next_free = ::open("/dev/null", O_RDONLY);
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{.rlim_cur = static_cast<rlim_t>(next_free) + 3, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    std::string why;
    try {
        (void)listener.accept(patient);
    } catch (const error& thrown) {
        why = thrown.what();
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    ::close(next_free);
    ASSERT_EQ(why, "");
    EXPECT_EQ(peer.hear(hello('l').size()), hello('l'));
}

TEST_F(TcpExchange, TellsAPeerOfAnotherVersionItsOwn)
{
    raw_peer peer(listener.port());
    peer.say(hello('c', 2));
    expect_error(errc::timed_out, "no peer connected, but 1 other client connected",
                 [&] { (void)listener.accept(hasty); });
    EXPECT_EQ(peer.hear(100), hello('l')) << "and then the end";
}

TEST_F(TcpExchange, TellsWhoCameInsteadOfAPeer)
{
    expect_error(errc::timed_out, "no peer connected " + hasty_text + "; start the peer",
                 [&] { (void)listener.accept(hasty); });
    raw_peer peer(listener.port());
    peer.say("GET / HTTP/1.1\r\n\r\n");
    raw_peer silent(listener.port());
    const error thrown = error_of([&] { (void)listener.accept(hasty); });
    EXPECT_THAT(thrown.what(),
                HasSubstr("no peer connected, but 2 other clients connected (last one rejected: 127.0.0.1:"));
    EXPECT_THAT(thrown.what(), HasSubstr("\"GET / HTTP/1.1\\x0d\\n\") " + hasty_text));
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
                     "weftio: tcp_exchange: connecting to " + where + ": no peer accepted the connection (" + why +
                         ") " + hasty_text + "; start the peer's tcp_listener",
                     [&] { (void)tcp_exchange::connect(where, hasty); });
    };
    raw_listener silent;
    refused(silent.where, "it accepted the connection but sent nothing");
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
    refused("220 x\r\n", "the program that listens there is not a tcp_exchange: it sent \"220 x\\x0d\\n\"");
    refused("HTTP/1.1 400 Bad Request\r\n", "not a tcp_exchange: it sent \"HTTP/1.1 400 Bad\"");
    refused(hello('l', 2), "the peer has version 2, this library has version 1");
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
    EXPECT_NE(tcp_listener(":0").port(), 0);
    const tcp_listener ipv6("[::1]:0");
    expect_error(errc::timed_out, "Connection refused",
                 [&] { (void)tcp_exchange::connect("127.0.0.1:" + std::to_string(ipv6.port()), hasty); });
}

TEST_F(TcpExchange, RefusesAPlaceWhereItCannotListen)
{
    expect_error(errc::in_use,
                 "weftio: tcp_listener: " + where + ": Address already in use; stop the program that has the port",
                 [&] { tcp_listener other(where); });
    expect_error(errc::in_use, "already in use", [&] { tcp_listener other(std::to_string(listener.port())); });
    expect_error(errc::not_found, "name an address that an interface of this host has",
                 [] { tcp_listener other("192.0.2.1:0"); });
    expect_error(errc::invalid_argument, "weftio: tcp_listener: \"[::1]\": no port number; write PORT or ADDRESS:PORT",
                 [] { tcp_listener other("[::1]"); });
    for (const char* const host : {"no-such-host.invalid", "10.0.0.300"}) {
        const std::string words = "cannot resolve host \"" + std::string(host) + "\" (";
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
    expect_error(errc::invalid_argument, "the timeout is -1 ms; set the milliseconds",
                 [&] { (void)listener.accept({.timeout = milliseconds(-1)}); });
    expect_error(errc::invalid_argument, "the timeout is -1 ms",
                 [&] { (void)tcp_exchange::connect(where, {.timeout = milliseconds(-1)}); });
}

} // namespace weftio::test
