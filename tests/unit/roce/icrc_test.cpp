// The ICRC of packets that others made, and what it covers.
#include <map>

#include <gtest/gtest.h>

#include "net/icrc.hpp"
#include "reading.hpp"

namespace {

using namespace weftio::net;
using roce_reading::bytes;
using roce_reading::hex;
using roce_reading::icrc_by_zlib;

/// A packet of UC that Scapy's tests have, but for its ICRC, and that. Written down from memory, not copied: of its
/// header fields, those that were in doubt are the only ones of 36,864 combinations that give the published ICRC.
const bytes scapy = hex("45010040 04784000 4011 b4d5 c0a80007 c0a80007 c00012b7 002c0000"
                        "24 60 ffff 000000d3 00cf1710 4630818be28935d90e9a95505401be885e500000");
constexpr std::uint32_t scapy_icrc = 0xf353f378;

/// A SEND with 13 bytes and three of pad, between two Linux machines.
const bytes linux_send = hex("4500003cd69a40004011e010c0000203c0000202 c12112b700280000"
                             "0430ffff0000001180ffffff 6162636465666768696a6b6c6d000000");

/// The same over IPv6; made here.
bytes over_ipv6()
{
    bytes packet = hex("6000000000281140 20010db8000000000000000000000001 20010db8000000000000000000000002");
    packet.insert(packet.end(), linux_send.begin() + 20, linux_send.end());
    return packet;
}

TEST(Icrc, IsThatOfScapysPacket)
{
    EXPECT_EQ(icrc_of(scapy), scapy_icrc);
}

TEST(Icrc, IsThatOfLinux)
{
    EXPECT_EQ(icrc_of(linux_send), load_icrc(hex("2a403039").data()));
}

TEST(Icrc, IsWhatTheStandardDescribes)
{
    for (const bytes& packet : {scapy, linux_send, over_ipv6()})
        EXPECT_EQ(icrc_of(packet), icrc_by_zlib(packet));
}

TEST(Icrc, IsLittleEndian)
{
    bytes stored(4);
    store_icrc(stored.data(), scapy_icrc);
    EXPECT_EQ(stored, hex("78f353f3"));
    EXPECT_EQ(load_icrc(stored.data()), scapy_icrc);
}

/// Bits that the ICRC does not see: those that `mask` has.
void expect_covered_but_for(const bytes& packet, const std::map<std::size_t, std::uint8_t>& masked)
{
    const std::uint32_t right = icrc_of(packet);
    for (std::size_t at = 0; at < packet.size(); ++at) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            bytes wrong = packet;
            wrong[at] ^= static_cast<std::uint8_t>(1u << bit);
            if (at == 0 && bit >= 4)
                continue; // another version of IP
            const auto mask = masked.find(at);
            const bool hidden = mask != masked.end() && (mask->second >> bit & 1) != 0;
            EXPECT_EQ(icrc_of(wrong) == right, hidden) << "byte " << at << ", bit " << bit;
        }
    }
}

TEST(Icrc, OverIpv4SeesEveryBitButThoseThatRoutersChange)
{
    expect_covered_but_for(linux_send,
                           {{1, 0xff}, {8, 0xff}, {10, 0xff}, {11, 0xff}, {26, 0xff}, {27, 0xff}, {32, 0xff}});
}

TEST(Icrc, OverIpv6SeesEveryBitButThoseThatRoutersChange)
{
    expect_covered_but_for(over_ipv6(),
                           {{0, 0x0f}, {1, 0xff}, {2, 0xff}, {3, 0xff}, {7, 0xff}, {46, 0xff}, {47, 0xff}, {52, 0xff}});
}

TEST(Icrc, OfPiecesIsThatOfTheWhole)
{
    const bytes packet = over_ipv6();
    const auto all = std::span(packet);
    for (std::size_t first = masked_ipv6_bytes; first <= packet.size(); ++first) {
        for (std::size_t second = first; second <= packet.size(); ++second) {
            icrc sum(all.first(first));
            sum.add(all.subspan(first, second - first));
            bytes copied(packet.size() - second);
            sum.copy(copied.data(), all.subspan(second));
            ASSERT_EQ(sum.value(), icrc_of(packet)) << first << ", " << second;
            ASSERT_TRUE(std::equal(copied.begin(), copied.end(), packet.begin() + static_cast<std::ptrdiff_t>(second)));
        }
    }
}

TEST(Icrc, EndsAPacketWithItsPadAndItself)
{
    const std::size_t pad = 3;
    const auto headers = std::span(linux_send).first(linux_send.size() - pad);
    bytes end(8, 0xa5);
    icrc sum(headers);
    EXPECT_EQ(sum.finish(end.data(), pad), 7u);
    EXPECT_EQ(end, hex("000000 2a403039 a5"));
}

} // namespace
