// Checksums that a Linux sender leaves to its NIC, as they look where no NIC has finished them.
#include "net/checksum.hpp"

#include <gtest/gtest.h>

#include "frames.hpp"

namespace {

using namespace frames;

/// The sum that Linux writes, worked out byte by byte: addresses, protocol and length, folded and not inverted.
std::uint16_t pseudo_header_of(const bytes& frame, const weftio::net::packet_headers& headers)
{
    const bool ipv4 = headers.l3 == weftio::net::l3_kind::ipv4;
    const std::size_t addresses = headers.l3_offset + (ipv4 ? 12 : 8), end = addresses + (ipv4 ? 8 : 32);
    std::uint32_t sum = headers.protocol + (headers.l3_end - headers.l4_offset);
    for (std::size_t at = addresses; at != end; at += 2)
        sum += static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]);
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
}

TEST(PartialChecksum, OfThePseudoHeaderAloneIsNotWrong)
{
    for (const bytes& whole : {udp4(), tcp4(), udp6()}) {
        const auto headers = weftio::net::parse(whole, {});
        const std::size_t at = headers.l4_offset + (headers.l4 == weftio::net::l4_kind::udp ? 6u : 16u);
        const std::uint16_t sum = pseudo_header_of(whole, headers);
        bytes frame = whole;
        frame[at] = static_cast<std::uint8_t>(sum >> 8);
        frame[at + 1] = static_cast<std::uint8_t>(sum);
        EXPECT_TRUE(weftio::net::verify_checksums(frame, headers).l4_good);
        frame[at + 1] ^= 1;
        EXPECT_FALSE(weftio::net::verify_checksums(frame, headers).l4_good);
    }
}

} // namespace
