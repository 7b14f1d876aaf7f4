// Where the headers of an Ethernet frame are, and what steering and completions want from them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace weftio::nic {

inline constexpr unsigned max_vlan_tags = 4; ///< in the frame itself; a fifth is taken for an unknown ether type
inline constexpr unsigned max_extension_headers = 8; ///< of IPv6; behind a longer chain no protocol is known

enum class l3_kind : std::uint8_t { none, ipv4, ipv6 };
enum class l4_kind : std::uint8_t { none, udp, tcp };

/// A header that the frame, or the IP packet in it, is too short for is absent, and so is all behind it.
struct packet_headers {
    std::array<std::uint8_t, 16> source{}; ///< network order; IPv4: the first four bytes, the others 0
    std::array<std::uint8_t, 16> destination{};
    std::uint32_t l3_end = 0;      ///< offset behind the IP packet, as its header says: may lie beyond the frame
    std::uint16_t ether_type = 0;  ///< after all tags; below 0x600 it is an IEEE 802.3 length
    std::uint16_t vlan_tci = 0;    ///< of the outermost tag, when `vlan_tags` > 0
    std::uint16_t l3_offset = 0;   ///< behind Ethernet and tags; 0: no complete Ethernet header
    std::uint16_t l4_offset = 0;   ///< behind IP and its options or extension headers, when `has_protocol`
    std::uint16_t source_port = 0; ///< host order, when `l4` is not none
    std::uint16_t destination_port = 0;
    std::uint8_t vlan_tags = 0; ///< a stripped one included
    l3_kind l3 = l3_kind::none; ///< IPv4 with its options, or the fixed header of IPv6, is complete
    l4_kind l4 = l4_kind::none; ///< UDP, or TCP with its options, is complete; never in a later fragment
    std::uint8_t protocol = 0;  ///< of IPv4, or the next header behind all extension headers of IPv6
    std::uint8_t tcp_flags = 0;
    bool has_protocol = false;   ///< false also where an IPv6 chain is broken, too long, or continues in a fragment
    bool fragment = false;       ///< a piece of a datagram; an IPv6 fragment header around a whole one does not count
    bool later_fragment = false; ///< not the first piece: what lies at `l4_offset` is no header
    bool source_routed = false;  ///< an IPv6 routing header has segments left: `destination` is not the last stop

    bool first_fragment() const noexcept { return fragment && !later_fragment; }
    /// Identifier of the outermost tag; 0xffff: no tag, as in flow_match::vlan.
    std::uint16_t vlan_id() const noexcept
    {
        return vlan_tags > 0 ? static_cast<std::uint16_t>(vlan_tci & 0x0fff) : std::uint16_t{0xffff};
    }
};

/// Reads Ethernet, up to max_vlan_tags tags (0x8100, 0x88a8, 0x9100), IPv4 or IPv6, UDP or TCP. Any thread; never
/// blocks; accepts any bytes and reads none outside `frame`.
///
/// @param frame         the frame, or its start: of a packet in several mbuf segments the first one. A header beyond it
/// is
///                      absent, so drivers that split headers across segments are not served.
/// @param stripped_tci  the tag that the driver took out (RTE_MBUF_F_RX_VLAN_STRIPPED): it counts as the outermost
packet_headers parse(std::span<const std::uint8_t> frame, std::optional<std::uint16_t> stripped_tci) noexcept;

} // namespace weftio::nic
