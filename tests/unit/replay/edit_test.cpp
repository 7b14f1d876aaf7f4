// Changes to frames, with checksums that still hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "send/edit.hpp"
#include "send/packet.hpp"

namespace weftio::replay::test {
namespace {

using octets = std::vector<std::uint8_t>;

/// Ethernet, IPv4, UDP with `payload` bytes; checksums are right.
octets udp4(std::size_t payload = 30)
{
    octets frame{0xa, 0xa, 0xa, 0xa, 0xa, 1,  0xa, 0xa, 0xa, 0xa, 0xa, 2, 0x08, 0,    0x45, 0,    0, 0, 0, 1,    0,
                 0,   64,  17,  0,   0,   10, 0,   0,   1,   10,  0,   0, 2,    0x10, 0,    0x20, 0, 0, 0, 0xff, 0xff};
    frame.resize(42 + payload, 0x5a);
    auto ip = static_cast<std::uint16_t>(28 + payload), udp = static_cast<std::uint16_t>(8 + payload);
    frame[16] = static_cast<std::uint8_t>(ip >> 8), frame[17] = static_cast<std::uint8_t>(ip);
    frame[38] = static_cast<std::uint8_t>(udp >> 8), frame[39] = static_cast<std::uint8_t>(udp);
    fix_checksums(*find_ip(frame.data(), static_cast<std::uint32_t>(frame.size())));
    return frame;
}

/// Ethernet, IPv6, TCP.
octets tcp6()
{
    octets frame(14 + 40 + 20 + 7, 0x33);
    const octets head{0x86, 0xdd, 0x60, 0, 0, 0,    0, 27, 6, 64, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                      0,    0,    0,    0, 1, 0xfd, 0, 0,  0, 0,  0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    std::copy(head.begin(), head.end(), frame.begin() + 12);
    fix_checksums(*find_ip(frame.data(), static_cast<std::uint32_t>(frame.size())));
    return frame;
}

/// One's complement sum of everything that a checksum covers: 0xffff where it is right (RFC 1071), worked out the slow
/// way.
unsigned sum(const octets& bytes)
{
    unsigned total = 0;
    for (std::size_t at = 0; at < bytes.size(); at += 2)
        total += static_cast<unsigned>(bytes[at] << 8) + (at + 1 < bytes.size() ? bytes[at + 1] : 0u);
    while (total >> 16)
        total = (total & 0xffff) + (total >> 16);
    return total;
}
octets piece(const octets& frame, std::size_t from, std::size_t to)
{
    return {frame.begin() + static_cast<std::ptrdiff_t>(from), frame.begin() + static_cast<std::ptrdiff_t>(to)};
}
void expect_good_checksums(const octets& frame, std::size_t network, bool six)
{
    if (!six) {
        EXPECT_EQ(sum(piece(frame, network, network + 20)), 0xffffu);
    }
    std::size_t addresses = network + (six ? 8 : 12), transport = network + (six ? 40 : 20);
    std::size_t length_at = network + (six ? 4 : 2);
    std::size_t end = network + (six ? 40 : 0) + static_cast<std::size_t>(frame[length_at] << 8 | frame[length_at + 1]);
    octets covered = piece(frame, addresses, transport), rest = piece(frame, transport, end);
    covered.insert(covered.end(), {0, frame[network + (six ? 6 : 9)], static_cast<std::uint8_t>(rest.size() >> 8),
                                   static_cast<std::uint8_t>(rest.size())});
    covered.insert(covered.end(), rest.begin(), rest.end());
    EXPECT_EQ(sum(covered), 0xffffu);
}

struct edited {
    octets bytes;
    std::optional<skip_reason> skipped;
};

edited changed(const edit_options& options, const octets& bytes, std::uint64_t pass = 0, std::uint32_t mtu = 1500,
               std::uint32_t link_type = 1)
{
    editor edits(options, mtu);
    octets room(edits.room_bytes());
    frame from;
    from.bytes = std::as_bytes(std::span<const std::uint8_t>(bytes));
    from.captured_bytes = static_cast<std::uint32_t>(bytes.size());
    from.link_type = link_type;
    std::uint32_t written = 0;
    edited made;
    made.skipped = edits.apply(from, pass, room.data(), written);
    made.bytes.assign(room.begin(), room.begin() + written);
    return made;
}

TEST(Editor, WithoutOptionsChangesNothingButPads)
{
    EXPECT_EQ(changed({}, udp4()).bytes, udp4());
    octets padded(60, 0);
    octets small(20, 7);
    std::copy(small.begin(), small.end(), padded.begin());
    EXPECT_EQ(changed({}, small).bytes, padded);
}

TEST(Editor, SkipsWhatCannotBeSentAndSaysWhy)
{
    EXPECT_EQ(changed({}, octets(13)).skipped, skip_reason::runt);
    EXPECT_EQ(changed({}, octets(60), 0, 1500, 113).skipped, skip_reason::link_type);
    EXPECT_EQ(changed({}, octets(1515)).skipped, skip_reason::oversize);
    EXPECT_FALSE(changed({}, octets(1514)).skipped);
}

TEST(Editor, LetsTaggedFramesBeLonger)
{
    for (const octets& type : {octets{0x81, 0}, octets{0x88, 0xa8}, octets{0x91, 0}}) {
        octets tagged(1522);
        std::copy(type.begin(), type.end(), tagged.begin() + 12);
        EXPECT_FALSE(changed({}, tagged).skipped);
        tagged.push_back(0);
        EXPECT_EQ(changed({}, tagged).skipped, skip_reason::oversize);
    }
}

TEST(Editor, TruncatesToTheMtu)
{
    EXPECT_EQ(changed({.truncate = true}, octets(9000)).bytes.size(), 1514u);
}

TEST(Editor, WritesMacsAndTags)
{
    edit_options options{.destination_mac = parse_mac("01:02:03:04:05:06"),
                         .source_mac = parse_mac("0a:0B:0c:0d:0e:0f"),
                         .vlan_push = 0x6064};
    octets frame = changed(options, udp4()).bytes;
    EXPECT_EQ(piece(frame, 0, 18), (octets{1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 0x81, 0, 0x60, 0x64, 0x08, 0}));
    EXPECT_EQ(frame.size(), udp4().size() + 4);
    EXPECT_EQ(changed({.vlan_pop = true}, changed({.vlan_push = 5}, udp4()).bytes).bytes, udp4());
    octets old = changed({.vlan_push = 5}, udp4()).bytes;
    old[12] = 0x91; // 0x9100
    EXPECT_EQ(changed({.vlan_pop = true}, old).bytes, udp4());
    EXPECT_EQ(changed({.vlan_pop = true}, udp4()).bytes, udp4());
}

TEST(Editor, MapsAddressesAndKeepsChecksums)
{
    edit_options options{
        .maps = {*parse_address_map("10.0.0.0/8=192.168.0.0/16"), *parse_address_map("fd00::/16=2001:db8::/32")}};
    octets four = changed(options, udp4(31)).bytes;
    EXPECT_EQ(piece(four, 26, 34), (octets{192, 168, 0, 1, 192, 168, 0, 2}));
    expect_good_checksums(four, 14, false);
    octets six = changed(options, tcp6()).bytes;
    EXPECT_EQ(piece(six, 22, 26), (octets{0x20, 0x01, 0x0d, 0xb8}));
    EXPECT_EQ(six[37], 1);
    expect_good_checksums(six, 14, true);
}

TEST(Editor, LeavesAddressesOutsideTheMap)
{
    EXPECT_EQ(changed({.maps = {*parse_address_map("10.0.0.2/31=1.1.1.0/31")}}, udp4()).bytes[29],
              1); // 10.0.0.1 is not in it
    EXPECT_EQ(changed({.maps = {*parse_address_map("10.0.0.2/31=1.1.1.0/31")}}, udp4()).bytes[30], 1);
}

TEST(Editor, MapsBehindTags)
{
    octets frame = changed({.vlan_push = 5, .maps = {*parse_address_map("10.0.0.0/8=11.0.0.0/8")}}, udp4()).bytes;
    EXPECT_EQ(frame[30], 11);
    expect_good_checksums(frame, 18, false);
}

TEST(Editor, GivesEveryPassOtherAddressesAndBothDirectionsTheSame)
{
    octets there = udp4(), back = udp4();
    std::swap_ranges(back.begin() + 26, back.begin() + 30, back.begin() + 30);
    EXPECT_EQ(changed({.unique_ip = true}, there, 0).bytes, there);
    octets second = changed({.unique_ip = true}, there, 300).bytes,
           answer = changed({.unique_ip = true}, back, 300).bytes;
    EXPECT_NE(piece(second, 26, 30), piece(there, 26, 30));
    EXPECT_EQ(piece(second, 26, 30), piece(answer, 30, 34));
    EXPECT_EQ(piece(second, 30, 34), piece(answer, 26, 30));
    expect_good_checksums(second, 14, false);
}

TEST(Editor, FixesChecksums)
{
    octets four = udp4(), six = tcp6();
    four[24] = four[40] = 0x77;
    six[14 + 40 + 16] = 0x77;
    EXPECT_EQ(changed({.fix_checksums = true}, four).bytes, udp4());
    EXPECT_EQ(changed({.fix_checksums = true}, six).bytes, tcp6());
}

TEST(Editor, LeavesAUdpPacketWithoutChecksumWithoutOne)
{
    octets frame = udp4();
    frame[40] = frame[41] = 0;
    octets mapped =
        changed({.maps = {*parse_address_map("10.0.0.0/8=11.0.0.0/8")}, .fix_checksums = true}, frame).bytes;
    EXPECT_EQ(piece(mapped, 40, 42), (octets{0, 0}));
}

TEST(Packet, ThatIsCutShortOrNoneIsNotFound)
{
    octets frame = udp4();
    EXPECT_FALSE(find_ip(frame.data(), 33));
    frame[14] = 0x4f; // a header of 60 bytes in a packet of 58
    EXPECT_FALSE(find_ip(frame.data(), 72));
    frame[14] = 0x65;
    EXPECT_FALSE(find_ip(frame.data(), 72));
    octets arp(60);
    arp[12] = 8, arp[13] = 6;
    EXPECT_FALSE(find_ip(arp.data(), 60));
}

TEST(Packet, OfEveryLengthIsEditedInsideItsBytes)
{
    edit_options options{.vlan_push = 5,
                         .maps = {*parse_address_map("10.0.0.0/8=11.0.0.0/8"), *parse_address_map("fd00::/8=fc00::/8")},
                         .fix_checksums = true};
    for (const octets& whole : {udp4(), tcp6()})
        for (std::size_t bytes = 14; bytes <= whole.size(); ++bytes) // the sanitizers look on
            EXPECT_FALSE(
                changed(options, octets(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes)), 1).skipped);
}

TEST(Parse, RefusesWhatIsNotAnAddress)
{
    for (const char* text : {"", "01:02:03:04:05", "01:02:03:04:05:6g", "01-02-03-04-05-06", "001:2:03:04:05:06"})
        EXPECT_FALSE(parse_mac(text)) << text;
    for (const char* text :
         {"", "10.0.0.0/8", "10.0.0.0/33=1.1.1.1/8", "10.0.0/8=1.1.1.1/8", "10.0.0.0/8=fd00::/8", "10.0.0.0/=1.1.1.1"})
        EXPECT_FALSE(parse_address_map(text)) << text;
}

} // namespace
} // namespace weftio::replay::test
