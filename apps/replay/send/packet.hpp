// Finds and edits the headers of a frame, and their checksums.
#pragma once

#include <cstdint>
#include <optional>

namespace weftio::replay {

/// Offsets of the headers of an IP packet in a frame. Every offset is inside the frame, except `end`; the headers up to
/// `payload` are complete.
struct ip_packet {
    std::uint8_t* frame = nullptr;
    std::uint32_t bytes = 0;   ///< length of the frame
    std::uint32_t network = 0; ///< offset of the IP header
    std::uint32_t payload = 0; ///< offset of the data behind the IP headers
    std::uint32_t end = 0;     ///< end of the packet by its header; may lie behind the frame
    unsigned version = 4;
    std::uint8_t protocol = 0;
    bool fragment = false;      ///< part of a packet
    bool first_fragment = true; ///< has the transport header

    unsigned address_bytes() const noexcept { return version == 4 ? 4 : 16; }
    std::uint8_t* source() const noexcept { return frame + network + (version == 4 ? 12 : 8); }
    std::uint8_t* destination() const noexcept { return source() + address_bytes(); }
};

/// Whether a VLAN tag begins with the two bytes at `type`: 802.1Q, 802.1ad, or the 0x9100 of older stacked tags.
bool is_vlan_tag(const std::uint8_t* type) noexcept;

/// Finds IPv4 or IPv6 behind up to two VLAN tags; nothing if there is none, or it is truncated.
std::optional<ip_packet> find_ip(std::uint8_t* frame, std::uint32_t bytes);

/// Replaces the address at `at` by `address`, and updates the checksums (RFC 1624).
void replace_address(const ip_packet& packet, std::uint8_t* at, const std::uint8_t* address);

/// TTL of IPv4, hop limit of IPv6.
std::uint8_t ttl_of(const ip_packet& packet) noexcept;
void replace_ttl(const ip_packet& packet, std::uint8_t ttl);
/// Replaces the six bits of the DSCP (RFC 2474); those of the ECN stay.
void replace_dscp(const ip_packet& packet, std::uint8_t dscp);

enum class port_end { source, destination };
/// A port of TCP or UDP; nothing in a later fragment, or if the capture has truncated it.
std::optional<std::uint16_t> port_of(const ip_packet& packet, port_end end);
/// Replaces a port, and updates the checksum. @pre port_of() returns a port
void replace_port(const ip_packet& packet, port_end end, std::uint16_t port);

/// Recomputes the IPv4 header checksum and that of TCP, UDP, ICMP or ICMPv6. A fragmented or truncated packet keeps its
/// transport checksum.
void fix_checksums(const ip_packet& packet);

} // namespace weftio::replay
