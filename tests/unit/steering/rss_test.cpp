#include <array>
#include <set>

#include <gtest/gtest.h>

#include <arpa/inet.h>

#include "frames.hpp"
#include "nic/soft/receive/steering.hpp"

namespace {

using namespace frames;
using weftio::rss_key;
using weftio::net::parse;
using weftio::nic::soft::rss_hash;

/// A line of Microsoft's "Verifying the RSS Hash Calculation".
struct vector {
    const char* destination;
    std::uint16_t destination_port;
    const char* source;
    std::uint16_t source_port;
    std::uint32_t addresses;
    std::uint32_t addresses_and_ports;
};

constexpr std::array vectors4 = {
    vector{"161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e8fc2, 0x51ccc178},
    vector{"65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718262a, 0xc626b0ea},
    vector{"12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0a5de, 0x5c2b394a},
    vector{"209.142.163.6", 2217, "38.27.205.30", 48228, 0x82989176, 0xafc7327f},
    vector{"202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d1809c5, 0x10e828a2},
};
constexpr std::array vectors6 = {
    vector{"3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc18cd5, 0x40207d3d},
    vector{"ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c461c, 0xdde51bbf},
    vector{"fe80::200:f8ff:fe21:67cf", 38024, "3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, 0x4b61e985, 0x02d1feef},
};

template <class Address>
Address address(int family, const char* text)
{
    Address value{};
    EXPECT_EQ(inet_pton(family, text, value.data()), 1) << text;
    return value;
}

bytes frame4(const vector& line, std::uint8_t protocol, std::uint16_t fragment_field = 0)
{
    return ethernet({}, 0x0800,
                    ipv4({.protocol = protocol,
                          .source = address<address4>(AF_INET, line.source),
                          .destination = address<address4>(AF_INET, line.destination),
                          .fragment = fragment_field},
                         protocol == 6 ? tcp(line.source_port, line.destination_port)
                                       : udp(line.source_port, line.destination_port)));
}
bytes frame6(const vector& line, std::uint8_t protocol, std::vector<extension> extensions = {})
{
    return ethernet({}, 0x86dd,
                    ipv6({.protocol = protocol,
                          .source = address<address6>(AF_INET6, line.source),
                          .destination = address<address6>(AF_INET6, line.destination),
                          .extensions = std::move(extensions)},
                         protocol == 6 ? tcp(line.source_port, line.destination_port)
                                       : udp(line.source_port, line.destination_port)));
}
std::uint32_t standard(const bytes& frame)
{
    return rss_hash(parse(frame, {}), rss_key::standard);
}
std::uint32_t symmetric(const bytes& frame)
{
    return rss_hash(parse(frame, {}), rss_key::symmetric);
}

TEST(Rss, HashesIpv4AsMicrosoftPublished)
{
    for (const vector& line : vectors4) {
        EXPECT_EQ(standard(frame4(line, 1)), line.addresses) << line.source;
        EXPECT_EQ(standard(frame4(line, 6)), line.addresses_and_ports) << line.source;
        EXPECT_EQ(standard(frame4(line, 17)), line.addresses_and_ports) << line.source;
    }
}

TEST(Rss, HashesIpv6AsMicrosoftPublished)
{
    for (const vector& line : vectors6) {
        EXPECT_EQ(standard(frame6(line, 58)), line.addresses) << line.source;
        EXPECT_EQ(standard(frame6(line, 6)), line.addresses_and_ports) << line.source;
        EXPECT_EQ(standard(frame6(line, 17, {hop_by_hop()})), line.addresses_and_ports) << line.source;
    }
}

TEST(Rss, HashesAddressesOnlyOfFragments)
{
    EXPECT_EQ(standard(frame4(vectors4[0], 17, 0x2000)), vectors4[0].addresses) << "first fragment";
    EXPECT_EQ(standard(frame4(vectors4[0], 17, 0x0005)), vectors4[0].addresses) << "last fragment";
    EXPECT_EQ(standard(frame6(vectors6[0], 17, {fragment(1)})), vectors6[0].addresses);
    EXPECT_EQ(standard(frame6(vectors6[0], 17, {fragment(8)})), vectors6[0].addresses);
}

TEST(Rss, HashesBothDirectionsAlikeWithTheSymmetricKeyOnly)
{
    const auto swapped = [](const vector& line) {
        return vector{line.source, line.source_port, line.destination, line.destination_port, 0, 0};
    };
    for (const vector& line : vectors4) {
        EXPECT_EQ(symmetric(frame4(line, 6)), symmetric(frame4(swapped(line), 6)));
        EXPECT_EQ(symmetric(frame4(line, 1)), symmetric(frame4(swapped(line), 1)));
        EXPECT_NE(standard(frame4(line, 6)), standard(frame4(swapped(line), 6)));
    }
    std::set<std::uint32_t> distinct;
    for (const vector& line : vectors6) {
        EXPECT_EQ(symmetric(frame6(line, 17)), symmetric(frame6(swapped(line), 17)));
        distinct.insert(symmetric(frame6(line, 17)));
    }
    EXPECT_EQ(distinct.size(), vectors6.size());
}

TEST(Rss, HashesNothingWithoutAnIpHeader)
{
    EXPECT_EQ(standard(ethernet({}, 0x0806, bytes(28))), 0u);
}

} // namespace
