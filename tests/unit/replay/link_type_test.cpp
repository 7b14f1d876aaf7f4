// Captures of other kinds of link, made Ethernet.
#include <gtest/gtest.h>

#include <vector>

#include "send/link_type.hpp"

namespace weftio::replay::test {
namespace {

using octets = std::vector<std::uint8_t>;

octets operator+(octets left, const octets& right)
{
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

/// 20 bytes of IPv4 to 10.0.0.2, or to what is given.
octets ipv4(octets destination = {10, 0, 0, 2})
{
    return octets{0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1} + destination;
}
octets ipv6(std::uint8_t first)
{
    octets packet(40, 0);
    packet[0] = 0x60;
    packet[24] = first;
    packet[39] = 0xfb;
    return packet;
}

const octets unknown_ends{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1}, type_ipv4{0x08, 0x00}, type_ipv6{0x86, 0xdd};

struct made {
    octets bytes;
    std::optional<not_convertible> reason;
    frame whole;
};

made converted(link_type type, const octets& bytes, std::uint32_t original = 0)
{
    ethernet_maker maker;
    made result;
    result.whole.bytes = std::as_bytes(std::span<const std::uint8_t>(bytes));
    result.whole.captured_bytes = static_cast<std::uint32_t>(bytes.size());
    result.whole.original_bytes = original ? original : result.whole.captured_bytes;
    result.whole.link_type = static_cast<std::uint32_t>(type);
    result.reason = maker.convert(result.whole);
    for (std::byte byte : result.whole.bytes)
        result.bytes.push_back(std::to_integer<std::uint8_t>(byte));
    return result;
}

TEST(LinkType, EthernetStaysWhatItIs)
{
    octets frame(60, 7);
    EXPECT_EQ(converted(link_type::ethernet, frame).bytes, frame);
}

TEST(LinkType, RawIpGetsAHeaderThatFitsItsVersion)
{
    for (link_type type : {link_type::raw, link_type::raw_bsd, link_type::raw_openbsd, link_type::ipv4})
        EXPECT_EQ(converted(type, ipv4()).bytes, unknown_ends + type_ipv4 + ipv4());
    EXPECT_EQ(converted(link_type::raw, ipv6(0xfd)).bytes, unknown_ends + type_ipv6 + ipv6(0xfd));
    EXPECT_EQ(converted(link_type::raw, octets(40, 0x33)).reason, not_convertible::link_type);
    EXPECT_EQ(converted(link_type::raw, {}).reason, not_convertible::runt);
}

TEST(LinkType, MulticastAndBroadcastKeepTheirKindOfDestination)
{
    auto destination = [](const octets& packet) {
        octets frame = converted(link_type::raw, packet).bytes;
        return octets(frame.begin(), frame.begin() + 6);
    };
    EXPECT_EQ(destination(ipv4({255, 255, 255, 255})), (octets{255, 255, 255, 255, 255, 255}));
    EXPECT_EQ(destination(ipv4({239, 255, 1, 2})), (octets{0x01, 0, 0x5e, 0x7f, 1, 2}));
    EXPECT_EQ(destination(ipv6(0xff)), (octets{0x33, 0x33, 0, 0, 0, 0xfb}));
}

TEST(LinkType, BsdLoopbackLosesItsFamily)
{
    for (const octets& family : {octets{2, 0, 0, 0}, octets{0, 0, 0, 2}})
        for (link_type type : {link_type::bsd_loopback, link_type::openbsd_loopback})
            EXPECT_EQ(converted(type, family + ipv4()).bytes, unknown_ends + type_ipv4 + ipv4());
    EXPECT_EQ(converted(link_type::bsd_loopback, octets{30, 0, 0, 0} + ipv6(0xfd)).bytes,
              unknown_ends + type_ipv6 + ipv6(0xfd));
    EXPECT_EQ(converted(link_type::bsd_loopback, {2, 0, 0, 0}).reason, not_convertible::runt);
}

TEST(LinkType, LinuxCookedKeepsSourceAndType)
{
    const octets source{6, 5, 4, 3, 2, 1};
    octets first = octets{0, 4, 0, 1, 0, 6} + source + octets{0, 0} + type_ipv4 + ipv4();
    octets second = type_ipv4 + octets{0, 0, 0, 0, 0, 3, 0, 1, 4, 6} + source + octets{0, 0} + ipv4();
    octets frame = octets{2, 0, 0, 0, 0, 2} + source + type_ipv4 + ipv4();
    EXPECT_EQ(converted(link_type::linux_cooked, first).bytes, frame);
    EXPECT_EQ(converted(link_type::linux_cooked_2, second).bytes, frame);
    first[1] = second[10] = 1; // broadcast
    EXPECT_EQ(converted(link_type::linux_cooked, first).bytes[0], 0xff);
    EXPECT_EQ(converted(link_type::linux_cooked_2, second).bytes[0], 0xff);
    first[2] = second[8] = 824 >> 8; // netlink, whose protocol is no Ethernet type
    first[3] = second[9] = 824 & 0xff;
    EXPECT_EQ(converted(link_type::linux_cooked, first).reason, not_convertible::link_type);
    EXPECT_EQ(converted(link_type::linux_cooked_2, second).reason, not_convertible::link_type);
}

TEST(LinkType, LinuxCookedLlcGetsALength)
{
    octets frame = octets{0, 0, 0, 1, 0, 0} + octets(8, 0) + octets{0, 4} + octets{0x42, 0x42, 3, 9, 9};
    EXPECT_EQ(converted(link_type::linux_cooked, frame).bytes, (unknown_ends + octets{0, 5, 0x42, 0x42, 3, 9, 9}));
}

const octets a{1, 1, 1, 1, 1, 1}, b{2, 2, 2, 2, 2, 2}, c{3, 3, 3, 3, 3, 3}, d{4, 4, 4, 4, 4, 4};
const octets snap{0xaa, 0xaa, 3, 0, 0, 0, 0x08, 0x00};

octets wifi(std::uint8_t control, std::uint8_t flags)
{
    octets header = octets{control, flags, 0, 0} + a + b + c + octets{0, 0};
    return header + ((flags & 3) == 3 ? d : octets{}) + (control & 0x80 ? octets{0, 0} : octets{}) + snap + ipv4();
}

TEST(LinkType, WifiDataHasItsEndsWhereTheDirectionSays)
{
    struct direction {
        std::uint8_t flags;
        octets destination, source;
    };
    for (const direction& way : {direction{0, a, b}, direction{1, c, b}, direction{2, a, c}, direction{3, c, d}})
        for (std::uint8_t control : octets{0x08, 0x88})
            EXPECT_EQ(converted(link_type::ieee_802_11, wifi(control, way.flags)).bytes,
                      way.destination + way.source + type_ipv4 + ipv4())
                << int{way.flags} << " " << int{control};
}

TEST(LinkType, WifiThatIsNoPlainDataIsNotSent)
{
    octets fragment = wifi(0x08, 1), several = wifi(0x88, 1);
    fragment[22] = 1;
    several[24] = 0x80;
    for (const octets& frame : {wifi(0x80, 0), wifi(0x48, 1), wifi(0x08, 0x41), wifi(0x08, 0x05), fragment, several})
        EXPECT_EQ(converted(link_type::ieee_802_11, frame).reason, not_convertible::link_type);
}

TEST(LinkType, RadiotapSaysWhetherAnFcsFollows)
{
    const octets fcs{0xde, 0xad, 0xbe, 0xef}, time(8, 0x55);
    octets frame = c + b + type_ipv4 + ipv4();
    octets without{0, 0, 8, 0, 0, 0, 0, 0};
    octets with = octets{0, 0, 17, 0, 3, 0, 0, 0} + time + octets{0x10};
    octets two_masks = octets{0, 0, 25, 0, 3, 0, 0, 0x80, 0, 0, 0, 0, 9, 9, 9, 9} + time + octets{0x10};
    EXPECT_EQ(converted(link_type::radiotap, without + wifi(0x08, 1)).bytes, frame);
    for (const octets& header : {with, two_masks}) {
        octets whole = header + wifi(0x08, 1) + fcs;
        EXPECT_EQ(converted(link_type::radiotap, whole).bytes, frame);
        // Cut by the snapshot length: what is at the end is no FCS.
        EXPECT_EQ(converted(link_type::radiotap, whole, 1000).bytes, frame + fcs);
    }
}

TEST(LinkType, RadiotapLosesTheRestOfATruncatedFcs)
{
    const octets fcs{0xde, 0xad, 0xbe, 0xef}, header{0, 0, 9, 0, 2, 0, 0, 0, 0x10};
    const octets frame = c + b + type_ipv4 + ipv4(), data = header + wifi(0x08, 1);
    const auto on_wire = static_cast<std::uint32_t>(data.size() + fcs.size());
    for (std::ptrdiff_t kept = 0; kept <= 4; ++kept)
        EXPECT_EQ(converted(link_type::radiotap, data + octets(fcs.begin(), fcs.begin() + kept), on_wire).bytes, frame)
            << kept;
}

TEST(LinkType, RadiotapLosesAnFcsOnceIfTheCaptureTellsOfItToo)
{
    const octets data = octets{0, 0, 9, 0, 2, 0, 0, 0, 0x10} + wifi(0x08, 1);
    frame captured{.bytes = std::as_bytes(std::span<const std::uint8_t>(data)), .fcs_bytes = 4};
    captured.captured_bytes = captured.original_bytes = static_cast<std::uint32_t>(data.size());
    captured.link_type = static_cast<std::uint32_t>(link_type::radiotap);
    ethernet_maker maker;
    ASSERT_FALSE(maker.convert(captured));
    EXPECT_EQ(captured.bytes.size(), (c + b + type_ipv4 + ipv4()).size());
}

TEST(LinkType, RemembersWhatTheCaptureCut)
{
    made cut = converted(link_type::bsd_loopback, octets{2, 0, 0, 0} + ipv4(), 124);
    EXPECT_EQ(cut.whole.captured_bytes, 34u);
    EXPECT_EQ(cut.whole.original_bytes, 134u);
}

TEST(LinkType, OfEveryLengthIsReadInsideItsBytes)
{
    const octets tap{0, 0, 17, 0, 3, 0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0x30};
    for (std::uint32_t type : {0u, 12u, 101u, 105u, 108u, 113u, 127u, 228u, 276u, 999u})
        for (const octets& whole : {wifi(0x88, 0x83), tap + wifi(0x88, 0x83), octets{0, 0} + ipv6(0xff)})
            for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) // the sanitizers look on
                converted(static_cast<link_type>(type),
                          octets(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)));
}

} // namespace
} // namespace weftio::replay::test
