#include "net/packet_headers.hpp"

#include <algorithm>
#include <array>
#include <random>

#include <gtest/gtest.h>

#include "frames.hpp"

namespace {

using namespace frames;
using weftio::net::l3_kind;
using weftio::net::l4_kind;
using weftio::net::packet_headers;

packet_headers parse(const bytes& frame, std::optional<std::uint16_t> stripped_tci = {})
{
    return weftio::net::parse(frame, stripped_tci);
}

TEST(PacketHeaders, FindsUdpOverIpv4)
{
    const packet_headers headers = parse(udp4(1000, 2000));
    EXPECT_EQ(headers.ether_type, 0x0800);
    EXPECT_EQ(headers.l3, l3_kind::ipv4);
    EXPECT_EQ(headers.l3_offset, 14);
    EXPECT_EQ(headers.l3_end, 14 + 20 + 8 + 11);
    EXPECT_EQ(headers.source, (address6{10, 1, 2, 3}));
    EXPECT_EQ(headers.destination, (address6{192, 168, 7, 9}));
    EXPECT_TRUE(headers.has_protocol);
    EXPECT_EQ(headers.protocol, 17);
    EXPECT_EQ(headers.l4, l4_kind::udp);
    EXPECT_EQ(headers.l4_offset, 34);
    EXPECT_EQ(headers.source_port, 1000);
    EXPECT_EQ(headers.destination_port, 2000);
    EXPECT_FALSE(headers.fragment);
    EXPECT_EQ(headers.vlan_id(), 0xffff);
}

TEST(PacketHeaders, FindsTcpBehindIpv4Options)
{
    const packet_headers headers =
        parse(ethernet({}, 0x0800, ipv4({.protocol = 6, .option_bytes = 40}, tcp(80, 65535, 0x12, 40))));
    EXPECT_EQ(headers.l4, l4_kind::tcp);
    EXPECT_EQ(headers.l4_offset, 14 + 60);
    EXPECT_EQ(headers.source_port, 80);
    EXPECT_EQ(headers.destination_port, 65535);
    EXPECT_EQ(headers.tcp_flags, 0x12);
}

TEST(PacketHeaders, FindsUdpOverIpv6)
{
    const ipv6_fields fields;
    const packet_headers headers = parse(udp6(7, 9));
    EXPECT_EQ(headers.ether_type, 0x86dd);
    EXPECT_EQ(headers.l3, l3_kind::ipv6);
    EXPECT_EQ(headers.source, fields.source);
    EXPECT_EQ(headers.destination, fields.destination);
    EXPECT_EQ(headers.l4, l4_kind::udp);
    EXPECT_EQ(headers.l4_offset, 54);
    EXPECT_EQ(headers.l3_end, 54 + 8 + 11);
}

TEST(PacketHeaders, TakesTheOutermostOfUpToFourTags)
{
    const packet_headers two = parse(ethernet({{0x88a8, 0xe123}, {0x8100, 0x0456}}, 0x0800, ipv4({}, udp(1, 2))));
    EXPECT_EQ(two.vlan_tags, 2);
    EXPECT_EQ(two.vlan_tci, 0xe123);
    EXPECT_EQ(two.vlan_id(), 0x123);
    EXPECT_EQ(two.ether_type, 0x0800);
    EXPECT_EQ(two.l4, l4_kind::udp);

    const packet_headers four =
        parse(ethernet({{0x9100, 1}, {0x88a8, 2}, {0x8100, 3}, {0x8100, 4}}, 0x86dd, ipv6({}, udp(1, 2))));
    EXPECT_EQ(four.vlan_tags, 4);
    EXPECT_EQ(four.l3_offset, 14 + 16);
    EXPECT_EQ(four.l4, l4_kind::udp);
}

TEST(PacketHeaders, StopsAtTheFifthTag)
{
    const packet_headers headers =
        parse(ethernet({{0x8100, 1}, {0x8100, 2}, {0x8100, 3}, {0x8100, 4}, {0x8100, 5}}, 0x0800, ipv4({}, udp(1, 2))));
    EXPECT_EQ(headers.vlan_tags, 4);
    EXPECT_EQ(headers.ether_type, 0x8100);
    EXPECT_EQ(headers.l3, l3_kind::none);
}

TEST(PacketHeaders, CountsAStrippedTagAsTheOutermost)
{
    const packet_headers plain = parse(udp4(), std::uint16_t{0x2007});
    EXPECT_EQ(plain.vlan_tags, 1);
    EXPECT_EQ(plain.vlan_id(), 7);
    EXPECT_EQ(plain.l4, l4_kind::udp);

    const packet_headers tagged = parse(ethernet({{0x8100, 9}}, 0x0800, ipv4({}, udp(1, 2))), std::uint16_t{7});
    EXPECT_EQ(tagged.vlan_tags, 2);
    EXPECT_EQ(tagged.vlan_id(), 7);
}

TEST(PacketHeaders, WalksEveryKindOfExtensionHeader)
{
    for (const extension& one : {hop_by_hop(), destination_options(), destination_options(5), routing(0),
                                 authentication(), fragment(0), mobility()}) {
        const packet_headers headers = parse(ethernet({}, 0x86dd, ipv6({.extensions = {one}}, udp(3, 4))));
        EXPECT_EQ(headers.l4, l4_kind::udp) << "extension header " << int{one.number};
        EXPECT_EQ(headers.l4_offset, 54 + one.rest.size() + 1);
        EXPECT_EQ(headers.destination_port, 4);
        EXPECT_FALSE(headers.fragment);
    }
}

TEST(PacketHeaders, WalksEightExtensionHeadersAndNoMore)
{
    std::vector<extension> chain(8, destination_options());
    EXPECT_EQ(parse(ethernet({}, 0x86dd, ipv6({.extensions = chain}, udp(3, 4)))).l4, l4_kind::udp);
    chain.push_back(destination_options());
    const packet_headers headers = parse(ethernet({}, 0x86dd, ipv6({.extensions = chain}, udp(3, 4))));
    EXPECT_EQ(headers.l3, l3_kind::ipv6);
    EXPECT_FALSE(headers.has_protocol);
    EXPECT_EQ(headers.l4, l4_kind::none);
}

TEST(PacketHeaders, SaysWhetherARoutingHeaderHasSegmentsLeft)
{
    EXPECT_FALSE(parse(ethernet({}, 0x86dd, ipv6({.extensions = {routing(0)}}, udp(3, 4)))).source_routed);
    EXPECT_TRUE(parse(ethernet({}, 0x86dd, ipv6({.extensions = {routing(1)}}, udp(3, 4)))).source_routed);
}

TEST(PacketHeaders, ReadsPortsOfTheFirstIpv4FragmentOnly)
{
    const packet_headers first = parse(ethernet({}, 0x0800, ipv4({.fragment = 0x2000}, udp(5, 6))));
    EXPECT_TRUE(first.fragment && !first.later_fragment);
    EXPECT_EQ(first.l4, l4_kind::udp);
    EXPECT_EQ(first.source_port, 5);

    for (const std::uint16_t later_fragment : std::array<std::uint16_t, 3>{0x2001, 0x0001, 0x1000}) {
        const packet_headers later = parse(ethernet({}, 0x0800, ipv4({.fragment = later_fragment}, udp(5, 6))));
        EXPECT_TRUE(later.fragment && later.later_fragment);
        EXPECT_EQ(later.l4, l4_kind::none);
        EXPECT_EQ(later.source_port, 0);
        EXPECT_TRUE(later.has_protocol);
        EXPECT_EQ(later.protocol, 17);
    }
    EXPECT_FALSE(parse(ethernet({}, 0x0800, ipv4({.fragment = 0x4000}, udp(5, 6)))).fragment) << "don't fragment";
}

TEST(PacketHeaders, ReadsPortsOfTheFirstIpv6FragmentOnly)
{
    const auto make = [](std::uint16_t offset_and_more) {
        return parse(ethernet({}, 0x86dd, ipv6({.extensions = {hop_by_hop(), fragment(offset_and_more)}}, udp(5, 6))));
    };
    EXPECT_TRUE(make(1).fragment && !make(1).later_fragment);
    EXPECT_EQ(make(1).l4, l4_kind::udp);
    for (const std::uint16_t later : std::array<std::uint16_t, 3>{8, 9, 0xfff8}) {
        EXPECT_TRUE(make(later).later_fragment);
        EXPECT_EQ(make(later).l4, l4_kind::none);
        EXPECT_EQ(make(later).protocol, 17);
    }
    EXPECT_FALSE(make(0).fragment) << "a whole datagram behind a fragment header (RFC 6946)";
}

TEST(PacketHeaders, KnowsNoProtocolWhereTheChainGoesOnInALaterFragment)
{
    const packet_headers headers =
        parse(ethernet({}, 0x86dd, ipv6({.extensions = {fragment(8), destination_options()}}, udp(5, 6))));
    EXPECT_TRUE(headers.later_fragment);
    EXPECT_FALSE(headers.has_protocol);
}

TEST(PacketHeaders, TakesPaddingForNoHeader)
{
    bytes frame = ethernet({}, 0x0800, ipv4({.protocol = 17}, udp(5, 6, 0)));
    set(frame, 14 + 2, 20 + 7); // the packet ends one byte before the UDP header does
    EXPECT_EQ(parse(frame).l4, l4_kind::none);
    set(frame, 14 + 2, 20 + 8);
    EXPECT_EQ(parse(frame).l4, l4_kind::udp);

    bytes frame6 = udp6();
    set(frame6, 14 + 4, 7);
    EXPECT_EQ(parse(frame6).l4, l4_kind::none);
}

TEST(PacketHeaders, RefusesHeadersThatContradictThemselves)
{
    bytes version = udp4();
    version[14] = 0x65;
    EXPECT_EQ(parse(version).l3, l3_kind::none);
    bytes short_header = udp4();
    short_header[14] = 0x44;
    EXPECT_EQ(parse(short_header).l3, l3_kind::none);
    bytes version6 = udp6();
    version6[14] = 0x40;
    EXPECT_EQ(parse(version6).l3, l3_kind::none);
    bytes offset = tcp4();
    offset[14 + 20 + 12] = 0x40;
    EXPECT_EQ(parse(offset).l4, l4_kind::none);
}

/// Bytes of the L3 header that must be there for it to count, and of the L4 header.
std::size_t l3_header_bytes(const bytes& frame, const packet_headers& headers)
{
    return headers.l3 == l3_kind::ipv4 ? (frame[headers.l3_offset] & 15u) * 4u : 40;
}
std::size_t l4_header_bytes(const bytes& frame, const packet_headers& headers)
{
    return headers.l4 == l4_kind::udp ? 8 : (frame[headers.l4_offset + 12u] >> 4) * 4u;
}

TEST(PacketHeaders, LoseExactlyTheHeadersThatAFrameCutAtAnyByteLacks)
{
    for (const bytes& frame : whole_frames()) {
        const packet_headers whole = parse(frame);
        ASSERT_NE(whole.l4, l4_kind::none);
        const std::size_t l3_needs = whole.l3_offset + l3_header_bytes(frame, whole);
        const std::size_t l4_needs = whole.l4_offset + l4_header_bytes(frame, whole);
        for (std::size_t length = 0; length < frame.size(); ++length) {
            const bytes cut(frame.begin(),
                            frame.begin() + static_cast<std::ptrdiff_t>(length)); // its own: ASan sees its end
            const packet_headers headers = parse(cut);
            EXPECT_EQ(headers.l3_offset != 0, length >= 14);
            EXPECT_EQ(headers.l3, length >= l3_needs ? whole.l3 : l3_kind::none) << "cut at " << length;
            EXPECT_EQ(headers.l4, length >= l4_needs ? whole.l4 : l4_kind::none) << "cut at " << length;
            EXPECT_LE(headers.l3_offset, length);
        }
    }
}

TEST(PacketHeaders, LieWithinTheFrameWhateverItsBytesAre)
{
    std::minstd_rand random(20240607);
    const std::vector<bytes> seeds = whole_frames();
    unsigned with_l4 = 0;
    for (unsigned round = 0; round < 200000; ++round) {
        bytes frame = seeds[random() % seeds.size()];
        for (auto changes = random() % 6; changes > 0; --changes)
            frame[12 + random() % (frame.size() - 12)] = static_cast<std::uint8_t>(random());
        frame.resize(random() % 4 == 0 ? random() % frame.size() : frame.size());
        frame.shrink_to_fit();
        const packet_headers headers = parse(frame);
        ASSERT_LE(headers.l3_offset, frame.size());
        ASSERT_LE(headers.vlan_tags, weftio::net::max_vlan_tags);
        ASSERT_TRUE(headers.l3 != l3_kind::none || !headers.has_protocol);
        if (headers.l4 == l4_kind::none)
            continue;
        ++with_l4;
        ASSERT_TRUE(headers.has_protocol && !headers.later_fragment);
        ASSERT_LE(headers.l4_offset + l4_header_bytes(frame, headers),
                  std::min<std::size_t>(frame.size(), headers.l3_end));
    }
    EXPECT_GT(with_l4, 50000u) << "the changes must leave something to find";
}

} // namespace
