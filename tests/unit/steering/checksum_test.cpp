#include "net/checksum.hpp"

#include <array>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "frames.hpp"

namespace {

using namespace frames;
using weftio::net::checksum_verdict;

checksum_verdict verify(const bytes& frame)
{
    return weftio::net::verify_checksums(frame, weftio::net::parse(frame, {}));
}

TEST(Checksum, IsGoodForEveryShapeOfWholePacket)
{
    for (const bytes& frame : whole_frames()) {
        EXPECT_TRUE(verify(frame).l3_good);
        EXPECT_TRUE(verify(frame).l4_good);
    }
}

TEST(Checksum, TakesOddAndEmptyPayloads)
{
    for (std::size_t payload_bytes = 0; payload_bytes < 40; ++payload_bytes) {
        EXPECT_TRUE(verify(ethernet({}, 0x0800, ipv4({}, udp(1, 2, payload_bytes)))).l4_good);
        EXPECT_TRUE(verify(ethernet({}, 0x86dd, ipv6({}, udp(1, 2, payload_bytes)))).l4_good);
    }
}

TEST(Checksum, SeesEveryFlippedBitOfTheIpv4Header)
{
    const bytes good = udp4();
    for (unsigned bit = 0; bit < 20 * 8; ++bit) {
        bytes bad = good;
        bad[14 + bit / 8] = static_cast<std::uint8_t>(bad[14 + bit / 8] ^ 1 << bit % 8);
        EXPECT_FALSE(verify(bad).l3_good) << "bit " << bit;
    }
}

TEST(Checksum, SeesEveryFlippedBitOfTheDatagram)
{
    for (const bytes& good : {udp4(), tcp4(), udp6()}) {
        const std::size_t l4 = weftio::net::parse(good, {}).l4_offset;
        for (std::size_t bit = l4 * 8; bit < good.size() * 8; ++bit) {
            bytes bad = good;
            bad[bit / 8] = static_cast<std::uint8_t>(bad[bit / 8] ^ 1 << bit % 8);
            EXPECT_FALSE(verify(bad).l4_good) << "bit " << bit - l4 * 8;
            EXPECT_TRUE(verify(bad).l3_good);
        }
    }
}

TEST(Checksum, SeesWrongAddressesOfThePseudoHeader)
{
    bytes frame = udp6();
    frame[14 + 8] ^= 0x40;
    EXPECT_TRUE(verify(frame).l3_good) << "IPv6 has no checksum of its own";
    EXPECT_FALSE(verify(frame).l4_good);
}

TEST(Checksum, IsNotVerifiedForUdpWithoutOne)
{
    bytes frame = udp4();
    set(frame, 14 + 20 + 6, 0);
    EXPECT_TRUE(verify(frame).l3_good);
    EXPECT_FALSE(verify(frame).l4_good);
}

/// RFC 768: a sum of 0 is sent as 0xffff. One value of the last two bytes of a datagram gives it.
bytes udp_that_adds_up_to_zero()
{
    for (unsigned value = 0; value <= 0xffff; ++value) {
        bytes datagram = udp(1, 2, 10);
        set(datagram, 16, static_cast<std::uint16_t>(value));
        bytes frame = ethernet({}, 0x0800, ipv4({}, datagram));
        if (frame[14 + 20 + 6] == 0xff && frame[14 + 20 + 7] == 0xff)
            return frame;
    }
    ADD_FAILURE() << "one of the values must give 0xffff";
    return udp4();
}

TEST(Checksum, TellsASumOfZeroFromNoChecksum)
{
    const bytes frame = udp_that_adds_up_to_zero();
    EXPECT_TRUE(verify(frame).l4_good);
    bytes filled = frame;
    weftio::net::fill_checksums(filled, false, true);
    EXPECT_EQ(filled, frame);
    bytes none = frame;
    set(none, 14 + 20 + 6, 0);
    EXPECT_FALSE(verify(none).l4_good) << "it adds up, and yet nobody summed it";
}

/// A frame whose IPv4 header claims `total_bytes`, with a checksum that agrees.
bytes with_total_length(bytes frame, std::uint16_t total_bytes)
{
    set(frame, 14 + 2, total_bytes);
    set(frame, 14 + 10, 0);
    set(frame, 14 + 10, checksum(std::span(frame).subspan(14, 20)));
    return frame;
}

TEST(Checksum, IsNotGoodForLengthsThatCannotBe)
{
    const bytes frame = udp4();
    const auto total_bytes = static_cast<std::uint16_t>(frame.size() - 14);
    EXPECT_TRUE(verify(with_total_length(frame, total_bytes)).l4_good);
    EXPECT_FALSE(verify(with_total_length(frame, static_cast<std::uint16_t>(total_bytes - 1))).l4_good)
        << "the datagram is longer than its packet";
    EXPECT_TRUE(verify(with_total_length(frame, 20)).l3_good);
    EXPECT_FALSE(verify(with_total_length(frame, 19)).l3_good) << "the packet is shorter than its header";
    EXPECT_FALSE(verify(with_total_length(frame, static_cast<std::uint16_t>(total_bytes + 1))).l3_good)
        << "the packet is longer than the frame";
}

TEST(Checksum, IsNotVerifiedForFragments)
{
    for (const std::uint16_t fragment_field : std::array<std::uint16_t, 2>{0x2000, 0x0001}) {
        const bytes frame = ethernet({}, 0x0800, ipv4({.fragment = fragment_field}, udp(5, 6)));
        EXPECT_TRUE(verify(frame).l3_good);
        EXPECT_FALSE(verify(frame).l4_good);
    }
    EXPECT_FALSE(verify(ethernet({}, 0x86dd, ipv6({.extensions = {fragment(1)}}, udp(5, 6)))).l4_good);
    EXPECT_FALSE(verify(ethernet({}, 0x86dd, ipv6({.extensions = {routing(1)}}, udp(5, 6)))).l4_good)
        << "source routed";
}

TEST(Checksum, IgnoresPaddingBehindThePacket)
{
    bytes frame = udp4();
    frame.resize(frame.size() + 9, 0x77);
    EXPECT_TRUE(verify(frame).l3_good);
    EXPECT_TRUE(verify(frame).l4_good);
}

TEST(Checksum, CoversWhatTheUdpLengthSays)
{
    bytes datagram = udp(1, 2, 12);
    const ipv4_fields fields;
    finish_l4(datagram, 17, fields.source, fields.destination);
    append(datagram, bytes{1, 2, 3}); // in the IP packet, not in the datagram
    const bytes frame = ethernet({}, 0x0800, ipv4({.protocol = 99}, datagram));
    bytes as_udp = frame;
    as_udp[14 + 9] = 17;
    EXPECT_TRUE(verify(as_udp).l4_good);
    set(as_udp, 14 + 20 + 4, 7);
    EXPECT_FALSE(verify(as_udp).l4_good) << "shorter than its own header";
    set(as_udp, 14 + 20 + 4, 24);
    EXPECT_FALSE(verify(as_udp).l4_good) << "longer than the packet";
}

TEST(Checksum, IsNotGoodForFramesCutAnywhere)
{
    for (const bytes& frame : whole_frames())
        for (std::size_t length = 0; length < frame.size(); ++length) {
            const bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
            EXPECT_FALSE(verify(cut).l3_good);
            EXPECT_FALSE(verify(cut).l4_good);
        }
}

TEST(Checksum, ReadsNothingOutsideFramesOfRandomBytes)
{
    std::minstd_rand random(7);
    const std::vector<bytes> seeds = whole_frames();
    unsigned good = 0;
    for (unsigned round = 0; round < 100000; ++round) {
        bytes frame = seeds[random() % seeds.size()];
        for (auto changes = random() % 4; changes > 0; --changes)
            frame[12 + random() % (frame.size() - 12)] = static_cast<std::uint8_t>(random());
        frame.shrink_to_fit();
        good += verify(frame).l4_good;
    }
    EXPECT_GT(good, 10000u);
    EXPECT_LT(good, 90000u);
}

/// The frame without the checksums that fill_checksums() is asked for.
bytes without_checksums(bytes frame, bool l3, bool l4)
{
    const auto headers = weftio::net::parse(frame, {});
    if (l3 && headers.l3 == weftio::net::l3_kind::ipv4)
        set(frame, headers.l3_offset + 10u, 0xdead);
    if (l4)
        set(frame, headers.l4_offset + (headers.l4 == weftio::net::l4_kind::udp ? 6u : 16u), 0xbeef);
    return frame;
}

TEST(Checksum, FillsInWhatItIsAskedForAndNothingElse)
{
    for (const bytes& frame : whole_frames())
        for (const auto& [l3, l4] : {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
            bytes filled = without_checksums(frame, l3, l4);
            weftio::net::fill_checksums(filled, l3, l4);
            EXPECT_EQ(filled, frame) << l3 << l4;
            bytes left = without_checksums(frame, !l3, !l4);
            const bytes before = left;
            weftio::net::fill_checksums(left, l3, l4);
            EXPECT_EQ(left, before) << l3 << l4;
        }
}

TEST(Checksum, FillsInThatOfAnIpv4HeaderWhateverItsTotalLengthSays)
{
    const bytes frame = udp4();
    for (const std::uint16_t total_bytes : std::array<std::uint16_t, 3>{0, 19, 65535}) {
        const bytes wanted = with_total_length(frame, total_bytes);
        bytes filled = without_checksums(wanted, true, false);
        weftio::net::fill_checksums(filled, true, true);
        EXPECT_EQ(filled, wanted) << total_bytes;
    }
    bytes torn = frame; // options that are not there
    torn[14] = 0x4f;
    torn.resize(14 + 59);
    const bytes before = torn;
    weftio::net::fill_checksums(torn, true, true);
    EXPECT_EQ(torn, before);
}

TEST(Checksum, LeavesThatOfADatagramAloneWhoseLengthCannotBe)
{
    const std::size_t udp_length = 14 + 20 + 4;
    for (const std::uint8_t length : std::array<std::uint8_t, 3>{0, 7, 255}) {
        bytes frame = udp4();
        frame[udp_length] = 0;
        frame[udp_length + 1] = length;
        bytes filled = frame;
        weftio::net::fill_checksums(filled, false, true);
        EXPECT_EQ(filled, frame) << int{length};
    }
}

TEST(Checksum, LeavesTheL4ChecksumOfFragmentsAlone)
{
    for (const std::uint16_t fragment_field : std::array<std::uint16_t, 2>{0x2000, 0x0001}) {
        const bytes frame = ethernet({}, 0x0800, ipv4({.fragment = fragment_field}, udp(5, 6)));
        bytes filled = frame;
        weftio::net::fill_checksums(filled, true, true);
        EXPECT_EQ(filled, frame);
    }
}

} // namespace
