// Which packets a rule is for.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace weftio {

struct ipv4_prefix {
    std::array<std::uint8_t, 4> address{};
    std::uint8_t length = 32; ///< number of leading bits to compare
};
struct ipv6_prefix {
    std::array<std::uint8_t, 16> address{};
    std::uint8_t length = 128;
};
struct port_range {
    std::uint16_t first = 0;
    std::uint16_t last = 0; ///< inclusive
};
struct tcp_flags_match {
    std::uint8_t value = 0;
    std::uint8_t mask = 0xff; ///< bits to compare
};

/// Conditions on a packet; fields left out match everything. Ports and TCP flags match only packets that contain the L4
/// header, so not the later fragments of a datagram.
struct flow_match {
    std::optional<std::uint16_t> ether_type{}; ///< after all VLAN tags
    std::optional<std::uint16_t> vlan{};       ///< id of the outermost tag, stripped or not; 0xffff: untagged
    std::optional<ipv4_prefix> ipv4_source{};
    std::optional<ipv4_prefix> ipv4_destination{};
    std::optional<ipv6_prefix> ipv6_source{};
    std::optional<ipv6_prefix> ipv6_destination{};
    std::optional<std::uint8_t> ip_protocol{}; ///< IPv4 protocol, or the IPv6 next header behind all extension headers
    std::optional<port_range> source_port{};   ///< UDP or TCP
    std::optional<port_range> destination_port{};
    std::optional<tcp_flags_match> tcp_flags{};
};

/// The standard Toeplitz key of Microsoft's RSS specification, or a symmetric one, which gives both directions of a
/// connection to one queue.
enum class rss_key { standard, symmetric };

/// What a rule does with a packet.
enum class flow_kind { queue, rss, drop };

/// What executes a rule.
enum class flow_place {
    driver,  ///< the port's own hardware or driver, through rte_flow; the engine executes what the driver passes on
    software ///< the engine
};

} // namespace weftio
