#include "net/packet_headers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <netinet/in.h>

#include "net/byte_order.hpp"

namespace weftio::net {
namespace {

using bytes = std::span<const std::uint8_t>;

constexpr std::size_t mac_addresses_bytes = 12;
constexpr std::size_t extension_unit_bytes = 8; // the shortest extension header
constexpr std::size_t udp_header_bytes = 8;
constexpr std::size_t tcp_header_bytes = 20; // without options

bool fits(bytes data, std::size_t at, std::size_t count) noexcept
{
    return at <= data.size() && count <= data.size() - at;
}

std::uint16_t read_u16(bytes data, std::size_t at) noexcept
{
    return load_be<std::uint16_t>(&data[at]);
}

/// Reads the Ethernet header and VLAN tags. IEEE 802.1Q: a tag is its type, which ends the header before it, and two
/// bytes of TCI.
bool read_link(bytes frame, packet_headers& headers) noexcept
{
    std::size_t at = mac_addresses_bytes;
    if (!fits(frame, at, 2))
        return false;
    headers.ether_type = read_u16(frame, at);
    at += 2;
    for (unsigned tags = 0; tags < max_vlan_tags && is_vlan_type(headers.ether_type) && fits(frame, at, 4); ++tags) {
        if (headers.vlan_tags++ == 0)
            headers.vlan_tci = read_u16(frame, at);
        headers.ether_type = read_u16(frame, at + 2);
        at += 4;
    }
    headers.l3_offset = static_cast<std::uint16_t>(at);
    return true;
}

/// RFC 791, section 3.1.
bool read_ipv4(bytes frame, packet_headers& headers) noexcept
{
    const std::size_t at = headers.l3_offset;
    if (!fits(frame, at, ipv4_header_bytes) || frame[at] >> 4 != 4)
        return false;
    const std::size_t header_bytes = (frame[at] & 0x0fu) * 4u;
    if (header_bytes < ipv4_header_bytes || !fits(frame, at, header_bytes))
        return false;
    headers.l3 = l3_kind::ipv4;
    headers.l3_end = static_cast<std::uint32_t>(at + read_u16(frame, at + 2));
    const std::uint16_t fragment = read_u16(frame, at + 6);
    headers.fragment = (fragment & 0x3fff) != 0; // more fragments, or an offset
    headers.later_fragment = (fragment & 0x1fff) != 0;
    std::memcpy(headers.source.data(), &frame[at + 12], 4);
    std::memcpy(headers.destination.data(), &frame[at + 16], 4);
    headers.protocol = frame[at + 9];
    headers.has_protocol = true;
    headers.l4_offset = static_cast<std::uint16_t>(at + header_bytes);
    return true;
}

bool is_extension(std::uint8_t next) noexcept
{
    return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_DSTOPTS || next == IPPROTO_FRAGMENT ||
           next == IPPROTO_AH || next == IPPROTO_MH;
}

/// Length of the extension header `next` at `at`. @pre eight bytes are there. RFC 8200, section 4; AH: RFC 4302, 2.2.
std::size_t extension_bytes(bytes packet, std::size_t at, std::uint8_t next) noexcept
{
    if (next == IPPROTO_FRAGMENT)
        return extension_unit_bytes;
    return next == IPPROTO_AH ? (packet[at + 1] + 2u) * 4u : (packet[at + 1] + 1u) * extension_unit_bytes;
}

/// Walks from header `next` at `at` to the first header that is no extension. `packet` ends with the IP packet.
void read_extensions(bytes packet, std::uint8_t next, std::size_t at, packet_headers& headers) noexcept
{
    for (unsigned count = 0; is_extension(next) && !headers.later_fragment; ++count) {
        if (count == max_extension_headers || !fits(packet, at, extension_unit_bytes))
            return;
        const std::size_t length = extension_bytes(packet, at, next);
        if (!fits(packet, at, length))
            return;
        if (next == IPPROTO_FRAGMENT) {
            const std::uint16_t fragment = read_u16(packet, at + 2);
            headers.fragment = headers.fragment || (fragment & 0xfff9) != 0;
            headers.later_fragment = (fragment & 0xfff8) != 0;
        }
        if (next == IPPROTO_ROUTING && packet[at + 3] != 0)
            headers.source_routed = true;
        next = packet[at];
        at += length;
    }
    headers.has_protocol = !is_extension(next); // in a later fragment the rest of the chain is missing
    headers.protocol = headers.has_protocol ? next : std::uint8_t{0};
    headers.l4_offset = headers.has_protocol ? static_cast<std::uint16_t>(at) : std::uint16_t{0};
}

/// RFC 8200, section 3.
bool read_ipv6(bytes frame, packet_headers& headers) noexcept
{
    const std::size_t at = headers.l3_offset;
    if (!fits(frame, at, ipv6_header_bytes) || frame[at] >> 4 != 6)
        return false;
    headers.l3 = l3_kind::ipv6;
    headers.l3_end = static_cast<std::uint32_t>(at + ipv6_header_bytes + read_u16(frame, at + 4));
    std::memcpy(headers.source.data(), &frame[at + 8], 16);
    std::memcpy(headers.destination.data(), &frame[at + 24], 16);
    const bytes packet = frame.first(std::min<std::size_t>(frame.size(), headers.l3_end));
    read_extensions(packet, frame[at + 6], at + ipv6_header_bytes, headers);
    return true;
}

/// RFC 768, RFC 9293. `packet` ends with the IP packet.
void read_l4(bytes packet, packet_headers& headers) noexcept
{
    const std::size_t at = headers.l4_offset;
    if (headers.protocol == IPPROTO_UDP && fits(packet, at, udp_header_bytes)) {
        headers.l4 = l4_kind::udp;
    } else if (headers.protocol == IPPROTO_TCP && fits(packet, at, tcp_header_bytes)) {
        const std::size_t length = (packet[at + 12] >> 4) * 4u;
        if (length < tcp_header_bytes || !fits(packet, at, length))
            return;
        headers.l4 = l4_kind::tcp;
        headers.tcp_flags = packet[at + 13];
    } else {
        return;
    }
    headers.source_port = read_u16(packet, at);
    headers.destination_port = read_u16(packet, at + 2);
}

} // namespace

packet_headers parse(std::span<const std::uint8_t> frame, std::optional<std::uint16_t> stripped_tci) noexcept
{
    packet_headers headers;
    if (stripped_tci) {
        headers.vlan_tags = 1;
        headers.vlan_tci = *stripped_tci;
    }
    if (!read_link(frame, headers))
        return headers;
    const bool ip = (headers.ether_type == ether_type_ipv4 && read_ipv4(frame, headers)) ||
                    (headers.ether_type == ether_type_ipv6 && read_ipv6(frame, headers));
    if (ip && headers.has_protocol && !headers.later_fragment)
        read_l4(frame.first(std::min<std::size_t>(frame.size(), headers.l3_end)), headers);
    return headers;
}

} // namespace weftio::net
