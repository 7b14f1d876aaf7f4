// Headers as they come from strangers: every length that lies.
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/tcp/segment.h"

namespace weftio::test {
namespace {

using bytes = std::vector<weftio_u8>;

/// A header with these options, padded with what ends the list, in memory of exactly its size.
bytes header_with(bytes options)
{
    options.resize((options.size() + 3) / 4 * 4);
    bytes header(20);
    header[12] = static_cast<weftio_u8>((20 + options.size()) / 4 << 4);
    header[13] = TCP_SYN;
    header.insert(header.end(), options.begin(), options.end());
    return header;
}

std::uint32_t parse(const bytes& header, tcp_segment* segment)
{
    const bytes exact(header); // the sanitizer sees a read past its end
    return tcp_parse(exact.data(), static_cast<weftio_u32>(exact.size()), segment);
}

TEST(TcpSegment, ComesBackAsItWasWritten)
{
    tcp_segment sent, read;
    tcp_clear(&sent);
    sent.sequence = 0xfedcba98;
    sent.acknowledgment = 0x01234567;
    sent.source_port = 80;
    sent.destination_port = 54321;
    sent.window = 65535;
    sent.flags = TCP_SYN | TCP_ACK;
    sent.mss = 1460;
    sent.window_scale = 7;
    sent.sack_permitted = 1;
    sent.has_timestamps = 1;
    sent.ts_value = 0x89abcdef;
    sent.ts_echo = 0x76543210;
    bytes header(TCP_HEADER_MOST_BYTES);
    const weftio_u32 header_bytes = tcp_write(header.data(), &sent);
    EXPECT_EQ(header_bytes, 44u);
    EXPECT_EQ(tcp_parse(header.data(), header_bytes + 5, &read), std::uint32_t{TCP_PARSED});
    sent.header_bytes = 44;
    sent.payload_bytes = 5;
    EXPECT_EQ(std::memcmp(&sent, &read, sizeof sent), 0);
}

TEST(TcpSegment, ReadsOptionsOfAnyOrderAndAlignment)
{
    tcp_segment segment;
    ASSERT_EQ(parse(header_with({3, 3, 9, 1, 253, 4, 0, 0, 2, 4, 5, 0xb4, 4, 2}), &segment), std::uint32_t{TCP_PARSED});
    EXPECT_EQ(segment.window_scale, 9);
    EXPECT_EQ(segment.mss, 1460);
    EXPECT_EQ(segment.sack_permitted, 1);
    EXPECT_EQ(segment.has_timestamps, 0);
}

TEST(TcpSegment, StopsAtTheEndOfOptions)
{
    tcp_segment segment;
    ASSERT_EQ(parse(header_with({0, 2, 4, 5, 0xb4}), &segment), std::uint32_t{TCP_PARSED});
    EXPECT_EQ(segment.mss, 0);
}

TEST(TcpSegment, TakesAShiftBeyond14For14)
{
    tcp_segment segment;
    ASSERT_EQ(parse(header_with({3, 3, 255}), &segment), std::uint32_t{TCP_PARSED});
    EXPECT_EQ(segment.window_scale, 14);
}

TEST(TcpSegment, RefusesLengthsThatLie)
{
    tcp_segment segment;
    for (const bytes& options : std::vector<bytes>{{2, 0, 5, 0xb4}, // would never end
                                                   {2, 1, 5, 0xb4}, //
                                                   {2, 3, 5, 1},    // wrong for the kind
                                                   {2, 5, 5, 0xb4, 0},
                                                   {3, 4, 1, 1},
                                                   {4, 3, 1, 1},
                                                   {8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
                                                   {253, 0, 1, 1}, // of a kind that is not known
                                                   {253, 5, 1, 1}, // past the end
                                                   {1, 1, 1, 8},   // cut before its length
                                                   {1, 1, 8, 10}})
        EXPECT_EQ(parse(header_with(options), &segment), std::uint32_t{TCP_BAD_OPTION})
            << testing::PrintToString(options);
}

TEST(TcpSegment, RefusesHeadersThatAreCutOrTooShort)
{
    tcp_segment segment;
    for (std::uint32_t bytes = 0; bytes < 20; ++bytes)
        EXPECT_EQ(parse(std::vector<weftio_u8>(bytes, 0x50), &segment), std::uint32_t{TCP_CUT_HEADER});
    for (std::uint32_t offset = 0; offset < 16; ++offset)
        for (std::uint32_t size = 20; size <= 64; ++size) {
            bytes header(size, 1);
            header[12] = static_cast<weftio_u8>(offset << 4);
            const std::uint32_t wanted = offset < 5 ? TCP_BAD_OFFSET : offset * 4 > size ? TCP_CUT_HEADER : TCP_PARSED;
            ASSERT_EQ(parse(header, &segment), wanted) << offset << ' ' << size;
        }
}

TEST(TcpSegment, ReadsNoByteBeyondRandomHeaders)
{
    std::mt19937 random(7);
    for (int i = 0; i < 200000; ++i) {
        bytes header(random() % 64);
        for (auto& each : header)
            each = static_cast<weftio_u8>(random() % 4 ? random() % 12 : random());
        if (header.size() > 12)
            header[12] = static_cast<weftio_u8>(random());
        tcp_segment segment;
        if (parse(header, &segment) == TCP_PARSED) {
            ASSERT_EQ(segment.header_bytes + segment.payload_bytes, header.size());
        }
    }
}

TEST(Bytes, AddUpToTheChecksumOfRfc1071)
{
    const bytes example = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    EXPECT_EQ(ones_fold(ones_add(0, example.data(), 8)), 0xddf2u);
    EXPECT_EQ(ones_fold(ones_add(0, example.data(), 7)), 0xdcfbu); // as if 0 followed
    EXPECT_EQ(ones_fold(ones_add(0x1fffe, example.data(), 0)), 0xffffu);
    const bytes most(65535, 0xff);
    EXPECT_EQ(ones_fold(ones_add(0, most.data(), 65535)), 0xff00u);
}

} // namespace
} // namespace weftio::test
