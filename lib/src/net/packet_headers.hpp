// Parses the headers of an Ethernet frame for steering and completions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace weftio::net {

inline constexpr unsigned max_vlan_tags = 4; ///< in the frame itself; a fifth tag counts as an unknown ether type
inline constexpr unsigned max_extension_headers = 8; ///< IPv6; behind a longer chain the protocol is unknown

inline constexpr std::uint16_t ether_type_ipv4 = 0x0800, ether_type_ipv6 = 0x86dd;
/// Whether a VLAN tag follows: 802.1Q, 802.1ad, or the 0x9100 of older stacked tags.
constexpr bool is_vlan_type(std::uint16_t ether_type) noexcept
{
    return ether_type == 0x8100 || ether_type == 0x88a8 || ether_type == 0x9100;
}
/// Without options and extension headers.
inline constexpr std::size_t ipv4_header_bytes = 20, ipv6_header_bytes = 40;

enum class l3_kind : std::uint8_t { none, ipv4, ipv6 };
enum class l4_kind : std::uint8_t { none, udp, tcp };

/// A header that does not fit the frame, or the IP packet in it, counts as absent, and so do all headers behind it.
struct packet_headers {
    std::array<std::uint8_t, 16> source{}; ///< network order; IPv4 uses the first four bytes, the others are 0
    std::array<std::uint8_t, 16> destination{};
    std::uint32_t l3_end = 0;      ///< offset of the end of the IP packet by its header; may lie beyond the frame
    std::uint16_t ether_type = 0;  ///< behind all tags; below 0x600 it is an IEEE 802.3 length
    std::uint16_t vlan_tci = 0;    ///< outermost tag, if `vlan_tags` > 0
    std::uint16_t l3_offset = 0;   ///< behind Ethernet and tags; 0: the Ethernet header is incomplete
    std::uint16_t l4_offset = 0;   ///< behind IP with options or extension headers, if `has_protocol`
    std::uint16_t source_port = 0; ///< host order, if `l4` is not none
    std::uint16_t destination_port = 0;
    std::uint8_t vlan_tags = 0; ///< number of tags, a stripped one included
    l3_kind l3 = l3_kind::none; ///< set if IPv4 with its options, or the fixed header of IPv6, is complete
    l4_kind l4 = l4_kind::none; ///< set if UDP, or TCP with its options, is complete; none in a later fragment
    std::uint8_t protocol = 0;  ///< IPv4 protocol, or IPv6 next header behind all extension headers
    std::uint8_t tcp_flags = 0;
    bool has_protocol = false;   ///< false also if an IPv6 chain is malformed, too long, or continues in a fragment
    bool fragment = false;       ///< part of a datagram; false for an IPv6 fragment header around a whole datagram
    bool later_fragment = false; ///< not the first fragment: no L4 header at `l4_offset`
    bool source_routed = false;  ///< an IPv6 routing header has segments left: `destination` is an intermediate stop

    /// Identifier of the outermost tag; 0xffff: untagged, as in flow_match::vlan.
    std::uint16_t vlan_id() const noexcept
    {
        return vlan_tags > 0 ? static_cast<std::uint16_t>(vlan_tci & 0x0fff) : std::uint16_t{0xffff};
    }
};

/// Reads Ethernet, up to max_vlan_tags tags, IPv4 or IPv6, UDP or TCP. Any thread; never
/// blocks; accepts any bytes and reads none outside `frame`.
///
/// @param frame         the frame, or its first mbuf segment. Headers beyond it are absent, so drivers that split
///                      headers across segments are not supported.
/// @param stripped_tci  the tag that the driver has removed (RTE_MBUF_F_RX_VLAN_STRIPPED); it counts as the outermost
packet_headers parse(std::span<const std::uint8_t> frame, std::optional<std::uint16_t> stripped_tci) noexcept;

} // namespace weftio::net
