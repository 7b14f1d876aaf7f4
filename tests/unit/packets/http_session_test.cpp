// A connection's side of HTTP: bytes in, responses out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http_world.hpp"

namespace weftio::packets {

namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view get_front = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

TEST(HttpSession, AnswersTheFrontPageAndKeepsTheConnection)
{
    http_world world;
    http_peer peer(world);
    for (int round = 0; round < 100; ++round) {
        std::string text = peer.ask(get_front);
        EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK\r\n"));
        const http_reply reply = take_reply(text);
        EXPECT_THAT(reply.head, HasSubstr("\r\nConnection: keep-alive\r\n"));
        EXPECT_THAT(reply.body, HasSubstr("Weftio"));
        EXPECT_THAT(reply.body, HasSubstr("href=\"/stats\""));
        EXPECT_THAT(reply.body, HasSubstr("href=\"/contact\""));
        EXPECT_EQ(text, "");
    }
    EXPECT_EQ(peer.answered, 100u);
    EXPECT_EQ(peer.closed, 0u);
}

TEST(HttpSession, AnswersAFileAndItsHeadAlone)
{
    http_folder folder;
    folder.file("a/b.txt", "0123456789");
    http_world world({.root = folder.path()});
    http_peer peer(world);
    std::string text = peer.ask("GET /a/b.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    const http_reply whole = take_reply(text);
    EXPECT_EQ(whole.status, 200);
    EXPECT_EQ(whole.body, "0123456789");
    EXPECT_THAT(whole.head, HasSubstr("Content-Type: text/plain\r\n"));
    text = peer.ask("HEAD /a/b.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(text, whole.head);
}

TEST(HttpSession, AnswersNotFoundAndKeepsTheConnection)
{
    http_world world;
    http_peer peer(world);
    std::string text = peer.ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(take_reply(text).status, 404);
    text = peer.ask(get_front);
    EXPECT_EQ(take_reply(text).status, 200);
    EXPECT_EQ(peer.refused, 1u);
    EXPECT_EQ(peer.closed, 0u);
}

TEST(HttpSession, ClosesBehindTheAnswerWhenAskedTo)
{
    http_world world;
    http_peer peer(world);
    std::string text = peer.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n");
    EXPECT_THAT(take_reply(text).head, HasSubstr("\r\nConnection: close\r\n"));
    EXPECT_EQ(text, "");
    EXPECT_EQ(peer.closed, 1u);
    EXPECT_EQ(peer.send(get_front), get_front.size()) << "it is thrown away";
    EXPECT_EQ(peer.answered, 1u);
}

TEST(HttpSession, WritesCountersAsJson)
{
    http_world world({.counters = {{"packets"}, {"tcp.connections"}, {"tcp.resets"}, {"up_ns", HTTP_LARGEST}},
                      .facts = {{"device", "cpu \"0\""}}},
                     {.blocks = 2});
    world.values = {1, 20, 300, 7, 2, 30, 400, 9};
    http_peer peer(world);
    std::string text = peer.ask("GET /stats HTTP/1.1\r\nHost: a\r\n\r\n");
    const http_reply reply = take_reply(text);
    EXPECT_EQ(reply.body,
              "{\n  \"device\": \"cpu \\\"0\\\"\",\n  \"packets\": 3,\n  \"tcp\": {\n    \"connections\": 50,\n"
              "    \"resets\": 700\n  },\n  \"up_ns\": 9\n}\n");
    EXPECT_THAT(reply.head, HasSubstr("Content-Type: application/json\r\n"));
}

} // namespace

} // namespace weftio::packets
