#include "send/packet.hpp"

#include <cstring>
#include <utility>

namespace weftio::replay {

namespace {

constexpr std::uint8_t icmp = 1, tcp = 6, udp = 17, icmp6 = 58;
constexpr std::uint8_t hop_by_hop = 0, routing = 43, fragment = 44, destination_options = 60;

std::uint32_t word(const std::uint8_t* at)
{
    return static_cast<std::uint32_t>(at[0] << 8 | at[1]);
}

void put_word(std::uint8_t* at, std::uint32_t value)
{
    at[0] = static_cast<std::uint8_t>(value >> 8);
    at[1] = static_cast<std::uint8_t>(value);
}

std::uint32_t folded(std::uint64_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint32_t>(sum);
}

std::uint64_t sum_of(const std::uint8_t* at, std::uint32_t bytes)
{
    std::uint64_t sum = 0;
    for (; bytes > 1; at += 2, bytes -= 2)
        sum += word(at);
    return bytes ? sum + (std::uint64_t{*at} << 8) : sum;
}

/// Offset of the checksum in the transport header; 0 for protocols without one.
std::uint32_t checksum_at(const ip_packet& packet)
{
    switch (packet.protocol) {
        case tcp: return 16;
        case udp: return 6;
        case icmp: return packet.version == 4 ? 2 : 0;
        case icmp6: return packet.version == 6 ? 2 : 0;
        default: return 0;
    }
}

std::optional<ip_packet> find_ipv4(ip_packet packet)
{
    std::uint8_t* header = packet.frame + packet.network;
    if (packet.bytes - packet.network < 20 || header[0] >> 4 != 4)
        return std::nullopt;
    std::uint32_t header_bytes = (header[0] & 0xfu) * 4;
    if (header_bytes < 20 || header_bytes > packet.bytes - packet.network)
        return std::nullopt;
    packet.version = 4;
    packet.payload = packet.network + header_bytes;
    packet.end = packet.network + word(header + 2);
    packet.protocol = header[9];
    packet.fragment = (word(header + 6) & 0x3fff) != 0;
    packet.first_fragment = (word(header + 6) & 0x1fff) == 0;
    return packet;
}

std::optional<ip_packet> find_ipv6(ip_packet packet)
{
    std::uint8_t* header = packet.frame + packet.network;
    if (packet.bytes - packet.network < 40 || header[0] >> 4 != 6)
        return std::nullopt;
    packet.version = 6;
    packet.payload = packet.network + 40;
    packet.end = packet.payload + word(header + 4);
    packet.protocol = header[6];
    for (unsigned steps = 0; steps < 8 && packet.bytes - packet.payload >= 8; ++steps) {
        const std::uint8_t* extension = packet.frame + packet.payload;
        std::uint32_t bytes = 8;
        if (packet.protocol == fragment) {
            packet.fragment = (word(extension + 2) & 0xfff9) != 0;
            packet.first_fragment = (word(extension + 2) & 0xfff8) == 0;
        } else if (packet.protocol == hop_by_hop || packet.protocol == routing ||
                   packet.protocol == destination_options) {
            bytes = (extension[1] + 1u) * 8;
        } else {
            break;
        }
        if (bytes > packet.bytes - packet.payload)
            return packet;
        packet.protocol = extension[0];
        packet.payload += bytes;
    }
    return packet;
}

/// Updates the checksum at `at`: subtracts `removed`, adds `added` (RFC 1624).
void adjust(std::uint8_t* at, std::uint64_t removed, std::uint64_t added, bool zero_is_none)
{
    std::uint32_t value = folded((~word(at) & 0xffff) + (~folded(removed) & 0xffff) + std::uint64_t{folded(added)});
    value = ~value & 0xffff;
    put_word(at, value == 0 && zero_is_none ? 0xffff : value);
}

/// Sum of the pseudo-header (RFC 768, RFC 8200 section 8.1).
std::uint64_t pseudo_header(const ip_packet& packet, std::uint32_t bytes)
{
    return sum_of(packet.source(), 2 * packet.address_bytes()) + bytes + packet.protocol;
}

/// Updates the transport checksum, if the frame has one, after a change of bytes that it covers.
void adjust_transport(const ip_packet& packet, std::uint64_t removed, std::uint64_t added)
{
    std::uint32_t field = checksum_at(packet);
    if (field == 0 || packet.protocol == icmp || !packet.first_fragment || packet.bytes - packet.payload < field + 2)
        return;
    std::uint8_t* checksum = packet.frame + packet.payload + field;
    if (packet.protocol != udp || word(checksum) != 0) // UDP: 0 means that there is none
        adjust(checksum, removed, added, packet.protocol == udp);
}

/// Replaces a byte of the IPv4 header and updates the checksum, which covers the 16-bit word at the even offset.
void replace_byte(const ip_packet& packet, std::uint32_t at, std::uint8_t value)
{
    std::uint8_t* header = packet.frame + packet.network;
    std::uint32_t removed = word(header + at / 2 * 2);
    header[at] = value;
    adjust(header + 10, removed, word(header + at / 2 * 2), false);
}

} // namespace

bool is_vlan_tag(const std::uint8_t* type) noexcept
{
    const std::uint32_t value = word(type);
    return value == 0x8100 || value == 0x88a8 || value == 0x9100;
}

std::optional<ip_packet> find_ip(std::uint8_t* frame, std::uint32_t bytes)
{
    std::uint32_t at = 12;
    for (int tags = 0; tags < 3 && at + 2 <= bytes; ++tags, at += 4) {
        std::uint32_t type = word(frame + at);
        ip_packet packet{.frame = frame, .bytes = bytes, .network = at + 2};
        if (type == 0x0800)
            return find_ipv4(packet);
        if (type == 0x86dd)
            return find_ipv6(packet);
        if (!is_vlan_tag(frame + at))
            break;
    }
    return std::nullopt;
}

void replace_address(const ip_packet& packet, std::uint8_t* at, const std::uint8_t* address)
{
    std::uint64_t removed = sum_of(at, packet.address_bytes()), added = sum_of(address, packet.address_bytes());
    std::memcpy(at, address, packet.address_bytes());
    if (packet.version == 4)
        adjust(packet.frame + packet.network + 10, removed, added, false);
    adjust_transport(packet, removed, added);
}

std::uint8_t ttl_of(const ip_packet& packet) noexcept
{
    return packet.frame[packet.network + (packet.version == 4 ? 8 : 7)];
}

void replace_ttl(const ip_packet& packet, std::uint8_t ttl)
{
    if (packet.version == 4)
        replace_byte(packet, 8, ttl);
    else
        packet.frame[packet.network + 7] = ttl;
}

void replace_dscp(const ip_packet& packet, std::uint8_t dscp)
{
    std::uint8_t* header = packet.frame + packet.network;
    if (packet.version == 4)
        return replace_byte(packet, 1, static_cast<std::uint8_t>(dscp << 2 | (header[1] & 3)));
    header[0] = static_cast<std::uint8_t>((header[0] & 0xf0) | dscp >> 2); // the traffic class straddles bytes
    header[1] = static_cast<std::uint8_t>((dscp & 3) << 6 | (header[1] & 0x3f));
}

std::optional<std::uint16_t> port_of(const ip_packet& packet, port_end end)
{
    bool has_ports = (packet.protocol == tcp || packet.protocol == udp) && packet.first_fragment;
    if (!has_ports || packet.bytes - packet.payload < 4)
        return std::nullopt;
    return static_cast<std::uint16_t>(word(packet.frame + packet.payload + (end == port_end::source ? 0 : 2)));
}

void replace_port(const ip_packet& packet, port_end end, std::uint16_t port)
{
    std::uint8_t* at = packet.frame + packet.payload + (end == port_end::source ? 0 : 2);
    std::uint32_t removed = word(at);
    put_word(at, port);
    adjust_transport(packet, removed, port);
}

void fix_checksums(const ip_packet& packet)
{
    if (packet.version == 4) {
        std::uint8_t* header = packet.frame + packet.network;
        put_word(header + 10, 0);
        put_word(header + 10, ~folded(sum_of(header, packet.payload - packet.network)) & 0xffff);
    }
    std::uint32_t field = checksum_at(packet);
    if (field == 0 || packet.fragment || packet.end > packet.bytes || packet.end < packet.payload + field + 2)
        return;
    std::uint8_t* transport = packet.frame + packet.payload;
    if (packet.version == 4 && packet.protocol == udp && word(transport + field) == 0)
        return;
    std::uint32_t bytes = packet.end - packet.payload;
    put_word(transport + field, 0);
    std::uint64_t sum = sum_of(transport, bytes) + (packet.protocol == icmp ? 0 : pseudo_header(packet, bytes));
    std::uint32_t value = ~folded(sum) & 0xffff;
    put_word(transport + field, value == 0 && packet.protocol == udp ? 0xffff : value);
}

} // namespace weftio::replay
