// Any bytes, in any segments, with acknowledgments at any time: everything ends, and nothing outside is touched, which
// AddressSanitizer sees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "http_world.hpp"

namespace weftio::packets {

namespace {

class HttpRandom : public testing::TestWithParam<unsigned> {
 protected:
    std::size_t below(std::size_t bound) { return random_() % bound; }

    std::string bytes()
    {
        std::string made(below(300), '\0');
        for (char& each : made)
            each = static_cast<char>(random_());
        return made;
    }

    /// Parts of requests, right and wrong ones, in any order.
    std::string words()
    {
        static const std::string parts[] = {"GET ",
                                            "HEAD ",
                                            "POST ",
                                            "/",
                                            "/contact",
                                            "/stats",
                                            " HTTP/1.1\r\n",
                                            " HTTP/1.0\r\n",
                                            "Host: a\r\n",
                                            "\r\n",
                                            "\r\n\r\n",
                                            "Connection: close\r\n",
                                            "Content-Length: ",
                                            "17",
                                            "\n",
                                            "\r",
                                            "%2e",
                                            "..",
                                            "/../",
                                            "%",
                                            ":",
                                            ",",
                                            "If-None-Match: *\r\n",
                                            "If-None-Match: \"0123456789abcdef\"\r\n",
                                            "\t ",
                                            "http://a",
                                            "?",
                                            "Connection: keep-alive\r\n",
                                            "Transfer-Encoding: x\r\n",
                                            "GET / HTTP/1.1\r\nHost: a\r\n\r\n"};
        std::string made;
        for (std::size_t count = below(40); count > 0; --count)
            made += parts[below(std::size(parts))];
        return made;
    }

    /// Requests of which a few bytes are others.
    std::string requests()
    {
        std::string made;
        for (std::size_t count = 1 + below(8); count > 0; --count)
            made += "GET /stats?a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nIf-None-Match: \"1\"\r\n\r\n12345";
        for (std::size_t count = below(3); count > 0; --count)
            made[below(made.size())] = static_cast<char>(random_());
        return made;
    }

    std::mt19937 random_{GetParam()};
};

TEST_P(HttpRandom, BytesEndAndStayInside)
{
    http_world world({.counters = {{"a"}}}, {.head_bytes = 200, .target_bytes = 50, .body_bytes = 30});
    for (int connection = 0; connection < 300; ++connection) {
        http_peer peer(world);
        const std::size_t kind = below(3);
        std::string waiting = kind == 0 ? bytes() : kind == 1 ? words() : requests();
        while (!waiting.empty()) {
            const std::size_t taken = peer.send(waiting.substr(0, 1 + below(waiting.size())));
            waiting.erase(0, taken);
            EXPECT_EQ(peer.peek().size(), peer.ready - peer.acknowledged);
            if (taken == 0 || below(3) == 0)
                peer.acknowledge(peer.acknowledged + static_cast<std::uint32_t>(below(peer.peek().size() + 1)));
            if (taken == 0 && below(3) == 0)
                peer.acknowledge(peer.ready);
        }
        peer.end();
        peer.receive();
        EXPECT_EQ(peer.closed, 1u);
        EXPECT_LE(peer.refused, peer.answered);
    }
    EXPECT_EQ(world.worker.free_count, world.worker.buffer_count);
    for (std::uint32_t each = 0; each < world.worker.snapshots.count; ++each)
        EXPECT_EQ(http_snapshot_at(&world.worker.snapshots, each)->users, 0u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, HttpRandom, testing::Range(0u, 8u));

} // namespace

} // namespace weftio::packets
