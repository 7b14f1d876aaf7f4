#include "net/checksum.hpp"

#include <cstddef>
#include <cstring>

#include <rte_byteorder.h>
#include <rte_ip.h>
#include <rte_udp.h>

namespace weftio::net {
namespace {

constexpr std::uint16_t good_sum = 0xffff; // the sum of any data that includes its own checksum (RFC 1071)

/// Length of the UDP datagram or TCP segment; 0 if its length field is impossible.
std::uint32_t l4_bytes(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept
{
    const std::uint32_t room = headers.l3_end - headers.l4_offset;
    if (headers.l4 == l4_kind::tcp)
        return room;
    const std::uint8_t* header = &frame[headers.l4_offset];
    const auto length = static_cast<std::uint32_t>(header[4] << 8 | header[5]);
    return length >= sizeof(rte_udp_hdr) && length <= room ? length : 0;
}

std::uint16_t folded(std::uint32_t sum) noexcept
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
}

/// Sum of the pseudo header: RFC 768, RFC 9293, RFC 8200 section 8.1.
std::uint16_t pseudo_sum(const packet_headers& headers, std::uint32_t length) noexcept
{
    const std::size_t address_bytes = headers.l3 == l3_kind::ipv4 ? 4 : 16;
    std::uint32_t sum = rte_raw_cksum(headers.source.data(), address_bytes);
    sum += rte_raw_cksum(headers.destination.data(), address_bytes);
    sum += rte_cpu_to_be_16(headers.protocol);
    sum += rte_cpu_to_be_16(static_cast<std::uint16_t>(length));
    return folded(sum);
}

/// Sum of the pseudo header and the datagram.
std::uint16_t l4_sum(std::span<const std::uint8_t> frame, const packet_headers& headers, std::uint32_t length) noexcept
{
    return folded(std::uint32_t{pseudo_sum(headers, length)} + rte_raw_cksum(&frame[headers.l4_offset], length));
}

std::size_t checksum_offset(const packet_headers& headers) noexcept
{
    return headers.l4 == l4_kind::udp ? 6 : 16;
}

/// Whether the checksum field holds the sum of the pseudo header alone. Linux leaves it so for a NIC to finish; on a
/// veth pair no NIC does.
bool is_partial(std::span<const std::uint8_t> frame, const packet_headers& headers, std::uint32_t length) noexcept
{
    std::uint16_t field = 0;
    std::memcpy(&field, &frame[headers.l4_offset + checksum_offset(headers)], sizeof field);
    return field == pseudo_sum(headers, length);
}

bool l4_good(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept
{
    if (headers.l4 == l4_kind::none || headers.fragment || headers.source_routed)
        return false;
    const std::uint8_t* header = &frame[headers.l4_offset];
    if (headers.l4 == l4_kind::udp && header[6] == 0 && header[7] == 0)
        return false; // no checksum: allowed in IPv4, illegal in IPv6
    const std::uint32_t length = l4_bytes(frame, headers);
    return length != 0 && (l4_sum(frame, headers, length) == good_sum || is_partial(frame, headers, length));
}

/// rte_raw_cksum() of an IPv4 header: it takes two bytes at a time. @param bytes  a multiple of 4, 20 at least
std::uint16_t header_sum(const std::uint8_t* header, std::size_t bytes) noexcept
{
    const auto word = [header](std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, header + at, sizeof value);
        return std::uint64_t{value};
    };
    std::uint64_t sum = word(0) + word(4) + word(8) + word(12) + word(16);
    for (std::size_t at = sizeof(rte_ipv4_hdr); at < bytes; at += sizeof(std::uint32_t)) // options
        sum += word(at);
    sum = (sum & 0xffffffff) + (sum >> 32);
    return folded(static_cast<std::uint32_t>((sum & 0xffff) + (sum >> 16)));
}

bool l3_good(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept
{
    if (headers.l3 == l3_kind::ipv6)
        return true;
    const std::size_t header_bytes = (frame[headers.l3_offset] & 0x0fu) * 4u;
    return headers.l3_end >= headers.l3_offset + header_bytes &&
           header_sum(&frame[headers.l3_offset], header_bytes) == good_sum;
}

} // namespace

checksum_verdict verify_checksums(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept
{
    if (headers.l3 == l3_kind::none || headers.l3_end > frame.size())
        return {};
    return {.l3_good = l3_good(frame, headers), .l4_good = l4_good(frame, headers)};
}

wrong_checksum wrong_checksum_of(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept
{
    if (!l3_good(frame, headers))
        return wrong_checksum::ip;
    const std::uint8_t* const udp = &frame[headers.l4_offset];
    const bool has_checksum = (udp[6] | udp[7]) != 0;
    return has_checksum && !l4_good(frame, headers) ? wrong_checksum::udp : wrong_checksum::none;
}

void fill_checksums(std::span<std::uint8_t> frame, bool l3, bool l4) noexcept
{
    packet_headers headers = parse(frame, std::nullopt);
    if (l3 && headers.l3 == l3_kind::ipv4) {
        void* ip = &frame[headers.l3_offset];
        auto* header = static_cast<rte_ipv4_hdr*>(ip);
        header->hdr_checksum = 0;
        header->hdr_checksum = rte_ipv4_cksum(header);
    }
    if (!l4 || headers.fragment || headers.source_routed || headers.l4 == l4_kind::none ||
        headers.l3_end > frame.size())
        return;
    std::uint8_t* segment = &frame[headers.l4_offset];
    std::uint32_t length = l4_bytes(frame, headers);
    if (length == 0)
        return;
    const std::size_t at = checksum_offset(headers);
    segment[at] = segment[at + 1] = 0;
    std::uint16_t sum = l4_sum(frame, headers, length);
    auto checksum = static_cast<std::uint16_t>(~sum);
    if (checksum == 0 && headers.l4 == l4_kind::udp)
        checksum = 0xffff; // 0 means "no checksum" (RFC 768)
    std::memcpy(segment + at, &checksum, sizeof checksum);
}

} // namespace weftio::net
