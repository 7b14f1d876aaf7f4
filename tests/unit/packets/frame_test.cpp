// Answers without connections, as plain C++: frames of every length, with lengths that lie, in buffers of exactly their
// size.
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernel/udp.h"

namespace weftio::packets {
namespace {

using bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t own_mac[] = {2, 0, 0, 0, 0, 1}, peer_mac[] = {2, 0, 0, 0, 0, 2};
constexpr std::uint32_t all_good = WEFTIO_DEV_PACKET_L3_CHECKSUM_GOOD | WEFTIO_DEV_PACKET_L4_CHECKSUM_GOOD;

packets_settings own_settings()
{
    packets_settings settings{};
    settings.address_count = 2;
    settings.addresses[0] = {{10, 9, 0, 1}, 4, 24};
    settings.addresses[1] = {{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 6, 64};
    std::memcpy(settings.mac, own_mac, 6);
    settings.echo_port = 7;
    return settings;
}

void append(bytes& to, const bytes& more)
{
    to.insert(to.end(), more.begin(), more.end());
}

bytes ethernet(std::uint16_t type, const bytes& payload)
{
    bytes frame(own_mac, own_mac + 6);
    append(frame, bytes(peer_mac, peer_mac + 6));
    append(frame, {static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type)});
    append(frame, payload);
    return frame;
}

bytes ipv4(std::uint8_t protocol, const bytes& payload)
{
    const auto total = static_cast<std::uint16_t>(20 + payload.size());
    bytes packet = {0x45,
                    0,
                    static_cast<std::uint8_t>(total >> 8),
                    static_cast<std::uint8_t>(total),
                    0,
                    0,
                    0,
                    0,
                    64,
                    protocol,
                    0,
                    0,
                    10,
                    9,
                    0,
                    2,
                    10,
                    9,
                    0,
                    1};
    append(packet, payload);
    return ethernet(ETHERTYPE_IPV4, packet);
}

bytes ipv6(std::uint8_t protocol, const bytes& payload, std::uint8_t hops = 255)
{
    bytes packet = {
        0x60,     0,   0, 0, static_cast<std::uint8_t>(payload.size() >> 8), static_cast<std::uint8_t>(payload.size()),
        protocol, hops};
    append(packet, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
    append(packet, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
    append(packet, payload);
    return ethernet(ETHERTYPE_IPV6, packet);
}

/// Fills in the checksum of ICMP at byte 2 of `message`, `extra` being the sum of a pseudo header.
bytes with_checksum(bytes message, std::uint32_t extra = 0)
{
    const std::uint32_t sum =
        ~ones_fold(ones_add(extra, message.data(), static_cast<weftio_u32>(message.size()))) & 0xffff;
    be16_put(&message[2], sum);
    return message;
}

bytes ping(std::size_t data)
{
    bytes message = {8, 0, 0, 0, 0x12, 0x34, 0, 1};
    message.resize(8 + data, 0xa5);
    return ipv4(PROTOCOL_ICMP, with_checksum(message));
}

bytes udp(std::uint16_t port, const bytes& data)
{
    const auto count = static_cast<std::uint16_t>(8 + data.size());
    bytes datagram = {0x10,
                      0,
                      static_cast<std::uint8_t>(port >> 8),
                      static_cast<std::uint8_t>(port),
                      static_cast<std::uint8_t>(count >> 8),
                      static_cast<std::uint8_t>(count),
                      1,
                      1};
    append(datagram, data);
    return ipv4(PROTOCOL_UDP, datagram);
}

struct outcome {
    std::uint32_t verdict;
    bytes answer;
    packets_counters counters{};
};

/// What becomes of a frame. It lies in a buffer of its own size, so that a sanitizer sees what reads beyond it.
outcome take(const bytes& frame, std::uint32_t flags = all_good)
{
    const auto exact = std::make_unique<std::uint8_t[]>(frame.size());
    std::copy(frame.begin(), frame.end(), exact.get());
    const packets_settings settings = own_settings();
    const weftio_dev_packet packet{exact.get(), static_cast<weftio_u32>(frame.size()), flags, 0, 0, 0};
    bytes room(1522);
    answer made{room.data(), static_cast<weftio_u32>(room.size()), 0, 0};
    ::frame found;
    outcome seen{.verdict = read_frame(&packet, &settings, &found), .answer = {}};
    if (seen.verdict == VERDICT_NONE) {
        if (found.version == 0)
            seen.verdict = answer_arp(&found, &settings, &made);
        else if (found.protocol == PROTOCOL_UDP)
            seen.verdict = answer_udp(&found, &settings, &seen.counters, &made);
        else if (found.protocol == PROTOCOL_ICMP)
            seen.verdict = answer_icmp(&found, &settings, &made);
        else if (found.protocol == PROTOCOL_ICMPV6)
            seen.verdict = answer_icmpv6(&found, &settings, &made);
        else
            seen.verdict = VERDICT_other_protocol;
    }
    room.resize(made.bytes);
    seen.answer = room;
    return seen;
}

bytes neighbor_solicitation()
{
    bytes message = {135, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0,
                     0,   0, 0, 0, 0, 0, 0, 1, 1,    1, 2, 0, 0, 0, 0, 2};
    bytes addresses = ipv6(PROTOCOL_ICMPV6, {});
    const std::uint32_t sum = ones_add(PROTOCOL_ICMPV6 + 32, &addresses[22], 32);
    return ipv6(PROTOCOL_ICMPV6, with_checksum(message, sum));
}

/// Asks whether somebody has fd00::1, from no address (RFC 4862 5.4.2). `option`: with the asker's MAC, which is wrong.
bytes address_probe(bool option)
{
    const bytes target = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    bytes message = {135, 0, 0, 0, 0, 0, 0, 0};
    append(message, target);
    if (option)
        append(message, {1, 1, 2, 0, 0, 0, 0, 2});
    const bytes addresses = {0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,    0, 0, 0,
                             0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 1};
    const auto count = static_cast<weftio_u32>(message.size());
    bytes frame =
        ipv6(PROTOCOL_ICMPV6, with_checksum(message, ones_add(PROTOCOL_ICMPV6 + count, addresses.data(), 32)));
    std::copy(addresses.begin(), addresses.end(), frame.begin() + 22);
    return frame;
}

bytes arp_request()
{
    return ethernet(ETHERTYPE_ARP,
                    {0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 10, 9, 0, 2, 0, 0, 0, 0, 0, 0, 10, 9, 0, 1});
}

TEST(PacketFrames, AreAnswered)
{
    EXPECT_EQ(take(arp_request()).verdict, VERDICT_arp);
    EXPECT_EQ(take(neighbor_solicitation()).verdict, VERDICT_neighbor);
    EXPECT_EQ(take(address_probe(false)).verdict, VERDICT_neighbor);
    EXPECT_EQ(take(udp(7, {1, 2, 3})).verdict, VERDICT_udp_echo);
    for (std::size_t data = 0; data < 200; ++data) {
        const bytes asked = ping(data);
        const outcome seen = take(asked);
        ASSERT_EQ(seen.verdict, VERDICT_ping);
        ASSERT_EQ(seen.answer.size(), asked.size());
        ASSERT_EQ(ones_fold(ones_add(0, &seen.answer[34], static_cast<weftio_u32>(asked.size() - 34))), 0xffffu);
        ASSERT_TRUE(std::equal(asked.begin() + 38, asked.end(), seen.answer.begin() + 38));
    }
}

TEST(PacketFrames, TagsOfEveryTypeComeBack)
{
    for (const unsigned type : {0x8100u, 0x88a8u, 0x9100u}) {
        const bytes tags = {static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type), 0, 7, 0x81, 0, 0, 8};
        bytes asked = ping(20);
        asked.insert(asked.begin() + 12, tags.begin(), tags.end());
        const outcome seen = take(asked);
        ASSERT_EQ(seen.verdict, VERDICT_ping) << type;
        EXPECT_EQ(seen.answer.size(), asked.size());
        EXPECT_EQ(bytes(seen.answer.begin() + 12, seen.answer.begin() + 20), tags);
    }
}

TEST(PacketFrames, BytesBehindThePacketAreNotAnswered)
{
    bytes padded = ping(3);
    const std::size_t whole = padded.size();
    padded.resize(64, 0x77);
    const outcome seen = take(padded);
    EXPECT_EQ(seen.verdict, VERDICT_ping);
    EXPECT_EQ(seen.answer.size(), whole);
}

TEST(PacketFrames, CutAnywhereAreDropped)
{
    for (const bytes& whole : {arp_request(), neighbor_solicitation(), udp(7, {1, 2, 3}), ping(20)})
        for (std::size_t left = 0; left < whole.size(); ++left) {
            const outcome seen = take(bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(left)));
            EXPECT_TRUE(seen.verdict == VERDICT_cut || seen.verdict == VERDICT_bad_length)
                << left << ": " << seen.verdict;
            EXPECT_TRUE(seen.answer.empty());
        }
}

TEST(PacketFrames, WithAnyByteChangedEndInOneVerdict)
{
    std::mt19937 random(4711);
    for (const bytes& whole :
         {arp_request(), neighbor_solicitation(), udp(7, {1, 2, 3}), udp(53, bytes(40, 3)), ping(20)})
        for (unsigned round = 0; round < 20'000; ++round) {
            bytes changed = whole;
            for (unsigned each = 0; each <= round % 3; ++each)
                changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
            changed.resize(random() % (changed.size() + 1));
            const outcome seen = take(changed, static_cast<std::uint32_t>(random()) & 3);
            ASSERT_LT(seen.verdict, static_cast<std::uint32_t>(VERDICTS));
            ASSERT_LE(seen.answer.size(), 1522u);
        }
}

struct dropped_case {
    const char* name;
    bytes frame;
    std::uint32_t verdict;
    std::uint32_t flags = all_good;
};

bytes changed(bytes frame, std::size_t at, std::uint8_t value)
{
    frame[at] = value;
    return frame;
}

class DroppedFrames : public testing::TestWithParam<dropped_case> {};

TEST_P(DroppedFrames, AreCountedByReason)
{
    const outcome seen = take(GetParam().frame, GetParam().flags);
    EXPECT_EQ(seen.verdict, GetParam().verdict);
    EXPECT_TRUE(seen.answer.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Of, DroppedFrames,
    testing::Values(dropped_case{"AnotherMac", changed(ping(4), 5, 9), VERDICT_other_host},
                    dropped_case{"AnotherAddress", changed(ping(4), 33, 9), VERDICT_other_address},
                    dropped_case{"AnotherEthertype", ethernet(0x88cc, bytes(40)), VERDICT_other_ethertype},
                    dropped_case{"AnotherProtocol", changed(ping(4), 23, 99), VERDICT_other_protocol},
                    dropped_case{"ALoopbackSource", changed(ping(4), 26, 127), VERDICT_source},
                    dropped_case{"ASourceOfOurs", changed(ping(4), 29, 1), VERDICT_source},
                    dropped_case{"ABroadcastSource", changed(ping(4), 29, 255), VERDICT_source},
                    dropped_case{"ANetworkAsSource", changed(ping(4), 29, 0), VERDICT_source},
                    dropped_case{"AFrameForAll", changed(ping(4), 0, 3), VERDICT_other_host},
                    dropped_case{"AnIpv6SourceOfOurs", changed(neighbor_solicitation(), 37, 1), VERDICT_source},
                    dropped_case{"AnAddressProbeWithAMac", address_probe(true), VERDICT_bad_header},
                    dropped_case{"AnOptionThatForbids", ipv6(60, {58, 0, 0x5e, 4, 0, 0, 0, 0}), VERDICT_bad_header},
                    dropped_case{"AnOptionToSkipAndNothingBehind", ipv6(60, {58, 0, 0x1e, 4, 0, 0, 0, 0}), VERDICT_cut},
                    dropped_case{"AMulticastSource", changed(ping(4), 26, 224), VERDICT_source},
                    dropped_case{"AFragment", changed(ping(4), 20, 0x20), VERDICT_fragment},
                    dropped_case{"ALaterFragment", changed(ping(4), 21, 1), VERDICT_fragment},
                    dropped_case{"AShortHeader", changed(ping(4), 14, 0x44), VERDICT_bad_header},
                    dropped_case{"ALongHeader", changed(ping(4), 14, 0x4f), VERDICT_bad_length},
                    dropped_case{"ATotalLengthBeyondTheFrame", changed(ping(4), 17, 200), VERDICT_bad_length},
                    dropped_case{"AWrongIcmpChecksum", changed(ping(4), 42, 1), VERDICT_bad_checksum},
                    dropped_case{"AWrongIpChecksum", ping(4), VERDICT_bad_ip_checksum, 0},
                    dropped_case{"AUdpLengthBeyondThePacket", changed(udp(7, {1}), 39, 10), VERDICT_bad_length},
                    dropped_case{"AUdpLengthBelowItsHeader", changed(udp(7, {1}), 39, 7), VERDICT_bad_length},
                    dropped_case{"AnEchoOfAnEcho", changed(changed(udp(7, {1}), 34, 0), 35, 7), VERDICT_source},
                    dropped_case{"ASolicitationFromAfar", changed(neighbor_solicitation(), 21, 64), VERDICT_bad_header},
                    dropped_case{"AnExtensionHeaderThatLies", ipv6(0, {58, 200, 0, 0, 0, 0, 0, 0}), VERDICT_bad_length},
                    dropped_case{"EightExtensionHeaders",
                                 ipv6(60,
                                      [] {
                                          bytes chain;
                                          for (int each = 0; each < 9; ++each)
                                              append(chain, {60, 0, 1, 4, 0, 0, 0, 0});
                                          return chain;
                                      }()),
                                 VERDICT_bad_header}),
    [](const testing::TestParamInfo<dropped_case>& info) { return info.param.name; });

TEST(PacketDns, NamesMustBeSane)
{
    const bytes head = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0};
    const auto wrong = [&](const bytes& question) {
        bytes message = head;
        append(message, question);
        const outcome seen = take(udp(53, message));
        EXPECT_EQ(seen.verdict, VERDICT_dns_query);
        return seen.counters.wrong_names;
    };
    EXPECT_EQ(wrong({3, 'w', 'w', 'w', 0, 0, 1, 0, 1}), 0u);
    EXPECT_EQ(wrong({3, 'w', 'w', 'w', 0, 0, 1, 0}), 1u);     // class cut short
    EXPECT_EQ(wrong({64, 'w', 'w', 'w', 0, 0, 1, 0, 1}), 1u); // no label has 64 bytes
    EXPECT_EQ(wrong({9, 'w', 'w', 'w', 0, 0, 1, 0, 1}), 1u);  // the label leaves the message
    EXPECT_EQ(wrong({0xc0, 12, 0, 1, 0, 1}), 1u);             // a pointer to itself
    bytes longest;
    for (int label = 0; label < 4; ++label) {
        longest.push_back(63);
        longest.resize(longest.size() + 63, 'a');
    }
    append(longest, {0, 0, 1, 0, 1});
    EXPECT_EQ(wrong(longest), 1u); // 257 bytes
}

} // namespace
} // namespace weftio::packets
