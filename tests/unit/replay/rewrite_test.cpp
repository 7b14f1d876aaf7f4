// Ports, TTL and DSCP, with checksums that still hold; and which frames are sent at all.
#include <gtest/gtest.h>

#include <vector>

#include "send/edit.hpp"
#include "send/filter.hpp"
#include "send/packet.hpp"

namespace weftio::replay::test {
namespace {

using octets = std::vector<std::uint8_t>;
constexpr std::uint8_t tcp = 6, udp = 17;

/// Ethernet, IP, and a transport with ports 1234 and 80; checksums are right.
octets packet(unsigned version, std::uint8_t protocol)
{
    std::size_t network = version == 4 ? 20 : 40, transport = protocol == tcp ? 20 : 8;
    octets frame(14 + network + transport + 33, 0x5a);
    auto put = [&frame](std::size_t at, std::size_t value) {
        frame[at] = static_cast<std::uint8_t>(value >> 8);
        frame[at + 1] = static_cast<std::uint8_t>(value);
    };
    put(12, version == 4 ? 0x0800 : 0x86dd);
    if (version == 4) {
        put(14, 0x4503);
        put(16, frame.size() - 14);
        put(20, 0);
        put(22, std::size_t{64} << 8 | protocol);
    } else {
        put(14, 0x6030);
        put(18, frame.size() - 54);
        put(20, std::size_t{protocol} << 8 | 64);
    }
    put(14 + network, 1234);
    put(16 + network, 80);
    put(18 + network, transport + 33);
    fix_checksums(*find_ip(frame.data(), static_cast<std::uint32_t>(frame.size())));
    return frame;
}

octets changed(const edit_options& options, const octets& bytes)
{
    editor edits(options, 1500);
    octets room(edits.room_bytes());
    frame from;
    from.bytes = std::as_bytes(std::span<const std::uint8_t>(bytes));
    from.captured_bytes = static_cast<std::uint32_t>(bytes.size());
    from.link_type = link_type_ethernet;
    std::uint32_t written = 0;
    EXPECT_FALSE(edits.apply(from, 0, room.data(), written));
    room.resize(written);
    return room;
}

/// That working the checksums out afresh changes nothing.
void expect_good_checksums(const octets& frame)
{
    octets fixed = frame;
    fix_checksums(*find_ip(fixed.data(), static_cast<std::uint32_t>(fixed.size())));
    EXPECT_EQ(fixed, frame);
}

std::vector<octets> all_kinds()
{
    return {packet(4, tcp), packet(4, udp), packet(6, tcp), packet(6, udp)};
}

TEST(Rewrite, MapsPortsOfBothDirectionsAndKeepsChecksums)
{
    for (const octets& frame : all_kinds()) {
        octets made = changed({.ports = {*parse_port_map("80=8080"), *parse_port_map("1000-1999=7")}}, frame);
        std::size_t at = frame[14] >> 4 == 4 ? 34 : 54;
        EXPECT_EQ(made[at] << 8 | made[at + 1], 7);
        EXPECT_EQ(made[at + 2] << 8 | made[at + 3], 8080);
        expect_good_checksums(made);
        EXPECT_EQ(changed({.ports = {*parse_port_map("81-1233=1")}}, frame), frame);
    }
}

TEST(Rewrite, TakesTheFirstMapThatFits)
{
    octets made = changed({.ports = {*parse_port_map("80=81"), *parse_port_map("80-81=82")}}, packet(4, udp));
    EXPECT_EQ(made[37], 81);
}

TEST(Rewrite, LeavesLaterFragmentsAlone)
{
    octets fragment = packet(4, udp);
    fragment[21] = 1;
    EXPECT_EQ(changed({.ports = {*parse_port_map("0-65535=1")}}, fragment), fragment);
}

TEST(Rewrite, SetsAndMovesTheTtlWithinItsBounds)
{
    for (const octets& frame : all_kinds())
        for (auto [text, wanted] : {std::pair("7", 7), {"+1", 65}, {"-1", 63}, {"+255", 255}, {"-200", 1}}) {
            octets made = changed({.ttl = parse_ttl(text)}, frame);
            EXPECT_EQ(made[frame[14] >> 4 == 4 ? 22 : 21], wanted) << text;
            expect_good_checksums(made);
        }
}

TEST(Rewrite, SetsTheDscpAndLeavesTheEcn)
{
    octets four = changed({.dscp = 46}, packet(4, udp)), six = changed({.dscp = 46}, packet(6, tcp));
    EXPECT_EQ(four[15], 46 << 2 | 3);
    EXPECT_EQ((six[14] & 0xf) << 4 | six[15] >> 4, 46 << 2 | 3);
    EXPECT_EQ(six[14] >> 4, 6);
    expect_good_checksums(four);
    expect_good_checksums(six);
}

TEST(Rewrite, RefusesWhatIsNoMapOrTtl)
{
    for (const char* text : {"", "80", "80=", "=80", "80=65536", "90-80=1", "80=1x", "a=1"})
        EXPECT_FALSE(parse_port_map(text)) << text;
    for (const char* text : {"", "+", "0", "256", "--1", "+-1", "1x"})
        EXPECT_FALSE(parse_ttl(text)) << text;
}

bool passes(frame_filter& filter, const octets& bytes, std::uint32_t type = link_type_ethernet)
{
    frame captured;
    captured.bytes = std::as_bytes(std::span<const std::uint8_t>(bytes));
    captured.captured_bytes = captured.original_bytes = static_cast<std::uint32_t>(bytes.size());
    captured.link_type = type;
    return filter.passes(captured);
}

TEST(Filter, LetsThroughWhatTheExpressionSays)
{
    frame_filter filter("udp dst port 80");
    EXPECT_TRUE(passes(filter, packet(4, udp)));
    EXPECT_TRUE(passes(filter, packet(6, udp)));
    EXPECT_FALSE(passes(filter, packet(4, tcp)));
    frame_filter none("");
    EXPECT_TRUE(passes(none, {}));
}

TEST(Filter, IsCompiledForTheLinkTypeOfTheFrame)
{
    frame_filter filter("udp dst port 80");
    octets frame = packet(4, udp), raw(frame.begin() + 14, frame.end());
    EXPECT_TRUE(passes(filter, raw, 101));
    EXPECT_TRUE(passes(filter, raw, 228));
    EXPECT_FALSE(passes(filter, raw));
    frame_filter ethernet("ether host 5a:5a:5a:5a:5a:5a");
    EXPECT_TRUE(passes(ethernet, frame));
    EXPECT_FALSE(passes(ethernet, raw, 101)); // no such address there
}

TEST(Filter, ThatIsNoneIsRefusedWithTheReason)
{
    try {
        frame_filter filter("udp prot 53");
        FAIL();
    } catch (const open_error& error) {
        EXPECT_NE(std::string(error.what()).find("\"udp prot 53\""), std::string::npos) << error.what();
        EXPECT_NE(std::string(error.what()).find("syntax error"), std::string::npos) << error.what();
    }
}

} // namespace
} // namespace weftio::replay::test
