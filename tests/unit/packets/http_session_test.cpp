// A connection's side of HTTP: bytes in, responses out, and what sessions of a block share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http_world.hpp"

namespace weftio::packets {

namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string get_front = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const std::string get_stats = "GET /stats HTTP/1.1\r\nHost: a\r\n\r\n";

std::string times(std::size_t count, std::string_view text)
{
    std::string all;
    while (count-- > 0)
        all += text;
    return all;
}

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
    EXPECT_EQ(peer.ask("HEAD /a/b.txt HTTP/1.1\r\nHost: a\r\n\r\n"), whole.head);
}

TEST(HttpSession, CountsWhatItRefusesAndKeepsTheConnection)
{
    http_world world;
    http_peer peer(world);
    std::string text = peer.ask("GET /none HTTP/1.1\r\nHost: a\r\n\r\n" + get_front);
    EXPECT_EQ(take_reply(text).status, 404);
    EXPECT_EQ(take_reply(text).status, 200);
    EXPECT_EQ(peer.answered, 2u);
    EXPECT_EQ(peer.refused, 1u);
    EXPECT_EQ(peer.closed, 0u);
}

TEST(HttpSession, ThrowsAwayWhatFollowsAClose)
{
    http_world world;
    http_peer peer(world);
    std::string text = peer.ask("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n" + get_front);
    EXPECT_THAT(take_reply(text).head, HasSubstr("\r\nConnection: close\r\n"));
    EXPECT_EQ(text, "");
    EXPECT_EQ(peer.closed, 1u);
    EXPECT_EQ(peer.send(get_front), get_front.size());
    EXPECT_EQ(peer.answered, 1u);
    EXPECT_GT(http_room(&world.worker, &peer.session), 10'000u);
    peer.end();
    EXPECT_EQ(peer.closed, 1u) << "once";
}

TEST(HttpSession, ReadsBackTheSameBytesAtEveryOffset)
{
    http_world world({.counters = {{"packets"}}});
    http_peer peer(world);
    const std::string asked = get_front + "HEAD /contact HTTP/1.1\r\nHost: a\r\n\r\n" + get_stats + get_front;
    EXPECT_EQ(peer.send(asked), asked.size());
    const std::string all = peer.peek();
    ASSERT_EQ(all.size(), peer.ready);
    for (std::uint32_t from = 0; from <= all.size(); ++from) {
        EXPECT_EQ(peer.peek(from, 1), all.substr(from, 1));
        EXPECT_EQ(peer.peek(from, 1460), all.substr(from, 1460));
        const http_piece piece = http_piece_at(&world.worker, &peer.session, from, 700);
        const std::string_view seen(reinterpret_cast<const char*>(piece.address), piece.bytes);
        EXPECT_EQ(seen, std::string_view(all).substr(from, piece.bytes));
        EXPECT_EQ(seen.empty(), from == all.size());
    }
    EXPECT_EQ(peer.peek(0xffffffff, 10), "") << "before the first";
}

TEST(HttpSession, SendsHeadAndBodyAsOnePiece)
{
    http_world world;
    http_peer peer(world);
    peer.send(get_front);
    EXPECT_EQ(http_piece_at(&world.worker, &peer.session, 0, 0xffffffff).bytes, peer.ready);
}

TEST(HttpSession, AnswersAPipelineAsResponsesAreAcknowledged)
{
    http_world world;
    http_peer peer(world);
    const std::string asked = times(20, get_front);
    EXPECT_EQ(peer.send(asked), asked.size());
    EXPECT_EQ(peer.answered, HTTP_PIPELINE);
    std::string text = peer.receive();
    for (int round = 0; round < 20; ++round)
        EXPECT_EQ(take_reply(text).status, 200);
    EXPECT_EQ(text, "");
    EXPECT_EQ(world.worker.free_count, world.worker.buffer_count) << "no buffer is kept";
}

TEST(HttpSession, AcknowledgesOneResponseAtATime)
{
    http_world world;
    http_peer peer(world);
    peer.send(times(6, get_front));
    const std::uint32_t one = peer.ready / HTTP_PIPELINE;
    peer.acknowledge(one - 1);
    EXPECT_EQ(peer.answered, 4u);
    peer.acknowledge(one + 1);
    EXPECT_EQ(peer.answered, 5u);
    EXPECT_EQ(peer.peek(0, 1), "") << "it is free";
    EXPECT_EQ(peer.peek(one, 1), "H");
    peer.acknowledge(one + 1);
    peer.acknowledge(100 * one);
    peer.acknowledge(0u - one);
    EXPECT_EQ(peer.answered, 5u) << "nobody acknowledges what has not been sent";
}

TEST(HttpSession, TakesNoMoreThanItsBufferKeepsWhileResponsesWait)
{
    http_world world({}, {.head_bytes = 100, .target_bytes = 20});
    http_peer peer(world);
    const std::string asked = times(20, get_front);
    std::size_t taken = peer.send(asked);
    EXPECT_EQ(taken, 4 * get_front.size() + 100);
    EXPECT_EQ(http_room(&world.worker, &peer.session), 0u);
    EXPECT_EQ(peer.send(asked.substr(taken)), 0u);
    std::string text;
    while (taken < asked.size()) {
        text += peer.receive();
        const std::uint32_t room = http_room(&world.worker, &peer.session);
        const std::size_t more = peer.send(asked.substr(taken));
        EXPECT_GE(more, std::min<std::size_t>(room, asked.size() - taken));
        taken += more;
    }
    text += peer.receive();
    for (int round = 0; round < 20; ++round)
        EXPECT_EQ(take_reply(text).status, 200);
    EXPECT_EQ(peer.closed, 0u);
}

TEST(HttpSession, TakesACutRequestOnlyWhenABufferIsFree)
{
    http_world world({}, {.buffers = 1});
    http_peer first(world), second(world);
    EXPECT_EQ(first.send("GET"), 3u);
    EXPECT_EQ(http_room(&world.worker, &second.session), 0u);
    EXPECT_EQ(second.send("GET"), 0u);
    EXPECT_EQ(second.send(get_front + "GET"), get_front.size()) << "a whole request needs no buffer";
    EXPECT_EQ(first.send(get_front.substr(3)), get_front.size() - 3);
    EXPECT_EQ(second.send("GET"), 3u);
    EXPECT_EQ(second.send(get_front.substr(3)), get_front.size() - 3);
    EXPECT_EQ(second.answered, 2u);
}

TEST(HttpSession, ForgetsWhatItHasReadOfBytesNotTaken)
{
    http_world world({}, {.buffers = 0});
    http_peer peer(world);
    EXPECT_EQ(peer.send("BREW"), 0u);
    EXPECT_EQ(peer.send("\r\n" + get_front), 2 + get_front.size());
    EXPECT_EQ(peer.answered, 1u);
    EXPECT_EQ(peer.refused, 0u);
}

TEST(HttpSession, SkipsABodyWithoutABuffer)
{
    http_world world({}, {.buffers = 0});
    http_peer peer(world);
    peer.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    EXPECT_EQ(http_room(&world.worker, &peer.session), 10u);
    EXPECT_EQ(peer.send("01234"), 5u);
    EXPECT_EQ(peer.send("56789" + get_front), 5 + get_front.size());
    EXPECT_EQ(peer.answered, 2u);
}

TEST(HttpSession, SkipsABodyThatWaitsInTheBuffer)
{
    http_world world;
    http_peer peer(world);
    const std::string with_body = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";
    const std::string asked = times(10, with_body);
    EXPECT_EQ(peer.send(asked), asked.size());
    std::string text = peer.receive();
    for (int round = 0; round < 10; ++round)
        EXPECT_EQ(take_reply(text).status, 405);
    EXPECT_EQ(peer.answered, 10u);
}

TEST(HttpSession, ReturnsItsBufferWhenTheConnectionIsGone)
{
    http_world world;
    {
        http_peer peer(world);
        peer.send("GET /");
        EXPECT_EQ(world.worker.free_count, world.worker.buffer_count - 1);
    }
    EXPECT_EQ(world.worker.free_count, world.worker.buffer_count);
}

TEST(HttpSession, ClosesWhenThePeerEndsAndNothingWaits)
{
    http_world world;
    http_peer idle(world), cut(world), busy(world), piped(world);
    idle.end();
    EXPECT_EQ(idle.closed, 1u);
    cut.send("GET / HT");
    cut.end();
    EXPECT_EQ(cut.closed, 1u);
    EXPECT_EQ(cut.answered, 0u);
    busy.send(times(4, get_front));
    busy.end();
    EXPECT_EQ(busy.closed, 1u) << "FIN follows what is under way";
    EXPECT_NE(busy.peek(), "");
    piped.send(times(5, get_front));
    piped.end();
    EXPECT_EQ(piped.closed, 0u);
    piped.receive();
    EXPECT_EQ(piped.answered, 5u);
    EXPECT_EQ(piped.closed, 1u);
    EXPECT_EQ(world.worker.free_count, world.worker.buffer_count);
}

TEST(HttpSession, AnswersARequestThatIsNotCompleteInTime)
{
    http_world world;
    http_peer peer(world);
    EXPECT_EQ(http_deadline(&world.worker, &peer.session), 0u);
    peer.now = 500;
    peer.send("GET ");
    EXPECT_EQ(http_deadline(&world.worker, &peer.session), 1500u);
    peer.now = 1499;
    peer.send("/");
    peer.expire();
    EXPECT_EQ(peer.closed, 0u);
    peer.now = 1500;
    peer.expire();
    std::string text = peer.receive();
    EXPECT_EQ(take_reply(text).status, 408);
    EXPECT_EQ(peer.closed, 1u);
    EXPECT_EQ(peer.refused, 1u);
    EXPECT_EQ(world.worker.free_count, world.worker.buffer_count);
    EXPECT_EQ(http_deadline(&world.worker, &peer.session), 0u);
}

TEST(HttpSession, GivesEachRequestItsOwnTime)
{
    http_world world;
    http_peer peer(world);
    peer.send("GET ");
    peer.now = 900;
    peer.send(get_front.substr(4));
    EXPECT_EQ(http_deadline(&world.worker, &peer.session), 0u);
    peer.now = 5000;
    peer.expire();
    EXPECT_EQ(peer.closed, 0u) << "an idle connection is TCP's";
    peer.send("GET ");
    EXPECT_EQ(http_deadline(&world.worker, &peer.session), 6000u);
}

TEST(HttpSession, ClosesWithoutAnAnswerWhenABodyIsNotCompleteInTime)
{
    http_world world;
    http_peer peer(world);
    peer.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n123456789");
    EXPECT_EQ(http_deadline(&world.worker, &peer.session), 1001u);
    peer.now = 1000;
    peer.send("0");
    EXPECT_EQ(http_deadline(&world.worker, &peer.session), 0u);
    peer.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    peer.now = 2000;
    peer.expire();
    EXPECT_EQ(peer.closed, 1u);
    EXPECT_EQ(peer.answered, 2u);
}

TEST(HttpSession, KeepsItsStreamWhenPositionsWrap)
{
    http_world world;
    http_peer peer(world);
    peer.session.queued = peer.ready = peer.acknowledged = 0xffffffc0;
    peer.send(times(5, get_front));
    const std::string all = peer.receive();
    std::string rest = all;
    for (int round = 0; round < 5; ++round)
        EXPECT_EQ(take_reply(rest).status, 200);
    EXPECT_EQ(rest, "");
}

TEST(HttpSession, LetsRequestsWaitWhileTooMuchIsUnderWay)
{
    http_world world;
    http_peer peer(world);
    peer.send(get_front);
    peer.session.queued += HTTP_MOST_UNDER_WAY; /* as a long response would */
    peer.send(get_front);
    EXPECT_EQ(peer.answered, 1u);
    peer.acknowledge(peer.ready);
    EXPECT_EQ(peer.answered, 2u);
}

TEST(HttpStats, AreJson)
{
    http_world world({.counters = {{"packets"}, {"tcp.connections"}, {"tcp.resets"}, {"up_ns", HTTP_LARGEST}},
                      .facts = {{"device", "cpu \"0\""}}},
                     {.blocks = 2});
    world.values = {1, 20, 300, 7, 2, 30, 400, 9};
    http_peer peer(world);
    std::string text = peer.ask(get_stats);
    const http_reply reply = take_reply(text);
    EXPECT_EQ(reply.body, "{\n  \"device\": \"cpu \\\"0\\\"\",\n  \"packets\": 3,\n  \"tcp\": {\n    \"connections\": "
                          "50,\n    \"resets\": 700\n  },\n  \"up_ns\": 9\n}\n");
    EXPECT_THAT(reply.head, HasSubstr("Content-Type: application/json\r\n"));
    EXPECT_EQ(peer.ask("HEAD /stats HTTP/1.1\r\nHost: a\r\n\r\n"), reply.head);
    text = peer.ask("GET /stats HTTP/1.0\r\n\r\n");
    EXPECT_THAT(take_reply(text).head, HasSubstr("\r\nConnection: close\r\n"));
}

TEST(HttpStats, HaveRoomForTheLargestValues)
{
    http_world world({.counters = {{"a"}, {"b"}, {"c"}}}, {.snapshots = 1});
    world.values = {~0ull, 10'000'000'000'000'000'000ull, 9'999'999'999'999'999'999ull};
    http_peer peer(world);
    EXPECT_THAT(peer.ask(get_stats), HasSubstr("{\n  \"a\": 18446744073709551615,\n  \"b\": 10000000000000000000,\n"
                                               "  \"c\": 9999999999999999999\n}\n"));
}

TEST(HttpStats, StayAsTheyAreUntilTheyAreAcknowledged)
{
    http_world world({.counters = {{"packets"}}});
    http_peer peer(world);
    peer.send(get_stats);
    const std::string before = peer.peek();
    world.values[0] = 12345;
    peer.acknowledge(peer.ready - 1);
    EXPECT_EQ(peer.peek(0, peer.ready), before);
    peer.acknowledge(peer.ready);
    EXPECT_THAT(peer.ask(get_stats), HasSubstr("12345"));
}

TEST(HttpStats, AreSharedWhileNoSnapshotIsFreeAndTheNewestIsYoung)
{
    http_world world({.counters = {{"packets"}}});
    http_peer first(world), second(world), third(world);
    first.send(get_stats);
    world.values[0] = 1;
    second.send(get_stats);
    world.values[0] = 2;
    third.now += HTTP_SNAPSHOT_SHARED_NS;
    third.send(get_stats);
    EXPECT_EQ(third.peek(), second.peek());
    second.acknowledge(second.ready);
    EXPECT_THAT(third.peek(), HasSubstr("\"packets\": 1\n")) << "the third still needs it";
    third.acknowledge(third.ready);
    EXPECT_THAT(third.ask(get_stats), HasSubstr("\"packets\": 2\n"));
}

TEST(HttpStats, AreUnavailableWhenSnapshotsAreOldAndNoneIsFree)
{
    http_world world({.counters = {{"packets"}}}, {.snapshots = 1});
    http_peer second(world);
    {
        http_peer first(world);
        first.send(get_stats);
        second.now += HTTP_SNAPSHOT_SHARED_NS + 1;
        std::string text = second.ask(get_stats);
        const http_reply reply = take_reply(text);
        EXPECT_EQ(reply.status, 503);
        EXPECT_THAT(reply.head, HasSubstr("\r\nRetry-After: 1\r\n"));
        EXPECT_EQ(second.closed, 0u);
    }
    EXPECT_THAT(second.ask(get_stats), StartsWith("HTTP/1.1 200 ")) << "the first is gone, and its snapshot is free";
}

TEST(HttpStats, AreUnavailableWithoutSnapshots)
{
    http_world world({}, {.snapshots = 0});
    http_peer peer(world);
    EXPECT_THAT(peer.ask(get_stats), StartsWith("HTTP/1.1 503 "));
}

} // namespace

} // namespace weftio::packets
