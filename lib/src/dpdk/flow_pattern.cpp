#include "dpdk/flow_pattern.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <rte_byteorder.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#include "net/packet_headers.hpp"

namespace weftio::dpdk {

namespace {

constexpr std::uint16_t untagged = 0xffff;
constexpr std::uint16_t least_ether_type = 0x600; // below, the field is a length (IEEE 802.3)

/// Compares the bits of `mask` in the field at `offset` of a header. Fields are packed, so no reference can name one.
template <class Item, class Field>
void compare(flow_pattern::header<Item>& header, std::size_t offset, Field wanted, const Field& mask) noexcept
{
    const auto masks = std::bit_cast<std::array<std::uint8_t, sizeof mask>>(mask);
    auto values = std::bit_cast<std::array<std::uint8_t, sizeof wanted>>(wanted);
    for (std::size_t i = 0; i < masks.size(); ++i) {
        values[i] &= masks[i];
        header.compares = header.compares || masks[i] != 0;
    }
    std::memcpy(reinterpret_cast<std::byte*>(&header.value) + offset, values.data(), values.size());
    std::memcpy(reinterpret_cast<std::byte*>(&header.mask) + offset, masks.data(), masks.size());
}

template <class Item>
void compare_be(flow_pattern::header<Item>& header, std::size_t offset, std::uint16_t wanted,
                std::uint16_t mask = 0xffff) noexcept
{
    compare<Item, rte_be16_t>(header, offset, rte_cpu_to_be_16(wanted), rte_cpu_to_be_16(mask));
}

template <class Item, class Prefix>
void compare(flow_pattern::header<Item>& header, std::size_t offset, const std::optional<Prefix>& prefix) noexcept
{
    if (!prefix)
        return;
    auto mask = prefix->address;
    for (unsigned i = 0; i < mask.size(); ++i)
        mask[i] = static_cast<std::uint8_t>(0xff00u >> std::clamp(prefix->length - static_cast<int>(i * 8), 0, 8));
    compare(header, offset, prefix->address, mask);
}

/// Numbers of IPv6 extension headers, as the first of which a driver finds them.
bool is_extension(std::uint8_t protocol) noexcept
{
    return protocol == IPPROTO_HOPOPTS || protocol == IPPROTO_ROUTING || protocol == IPPROTO_FRAGMENT ||
           protocol == IPPROTO_AH || protocol == IPPROTO_DSTOPTS || protocol == IPPROTO_MH;
}

/// The bits to compare so that exactly the ports of `range` match; nothing if no mask does that.
std::optional<std::uint16_t> mask_of(const port_range& range) noexcept
{
    const unsigned count = range.last - range.first + 1u;
    if (!std::has_single_bit(count) || range.first % count != 0)
        return std::nullopt;
    return static_cast<std::uint16_t>(~(count - 1u));
}

bool needs_l4(const flow_match& match) noexcept
{
    return match.source_port || match.destination_port || match.tcp_flags;
}

/// Whether the header of UDP or TCP must have a bit that is set. Drivers may take the header of a later fragment, which
/// has none, for one of zeros.
bool compares_with_a_set_bit(const flow_match& match) noexcept
{
    const auto sets = [](const std::optional<port_range>& range) {
        return range && (range->first & mask_of(*range).value_or(0)) != 0;
    };
    return sets(match.source_port) || sets(match.destination_port) ||
           (match.tcp_flags && (match.tcp_flags->value & match.tcp_flags->mask) != 0);
}

std::string why_not_the_link(const flow_match& match)
{
    if (match.vlan == untagged)
        return "drivers differ in how they match packets without a VLAN tag";
    if (!match.ether_type)
        return {};
    const std::uint16_t type = *match.ether_type;
    if (net::is_vlan_type(type) || type < least_ether_type)
        return fmt::format("drivers treat ether_type {:#06x} as a VLAN tag or a length", type);
    if (type != net::ether_type_ipv4 && type != net::ether_type_ipv6 && (match.ip_protocol || needs_l4(match)))
        return fmt::format("no packet of ether_type {:#06x} has an IP header", type);
    return {};
}

std::string why_not_the_ports(const flow_match& match)
{
    for (const std::optional<port_range>& range : {match.source_port, match.destination_port})
        if (range && !mask_of(*range))
            return fmt::format("no bit mask matches exactly the ports {} to {}", range->first, range->last);
    if (needs_l4(match) && !compares_with_a_set_bit(match))
        return "ports and TCP flags are compared with 0 only, and a driver may match 0 in a fragment";
    return {};
}

/// @param source, destination  offsets of the ports in the header
template <class Item>
void add_ports(flow_pattern::header<Item>& header, std::size_t source, std::size_t destination,
               const flow_match& match) noexcept
{
    header.has = true;
    if (match.source_port)
        compare_be(header, source, match.source_port->first, mask_of(*match.source_port).value_or(0));
    if (match.destination_port)
        compare_be(header, destination, match.destination_port->first, mask_of(*match.destination_port).value_or(0));
}

/// Ethernet and VLAN. The ether types of IP are left to the IP headers.
flow_pattern link_pattern(const flow_match& match) noexcept
{
    constexpr std::uint16_t id_bits = 0x0fff;
    flow_pattern pattern;
    pattern.ethernet.has = true;
    pattern.vlan.has = match.vlan.has_value();
    if (match.vlan)
        compare_be(pattern.vlan, offsetof(rte_flow_item_vlan, hdr.vlan_tci), *match.vlan, id_bits);
    const std::uint16_t type = match.ether_type.value_or(net::ether_type_ipv4);
    if (type == net::ether_type_ipv4 || type == net::ether_type_ipv6)
        return pattern;
    if (match.vlan)
        compare_be(pattern.vlan, offsetof(rte_flow_item_vlan, hdr.eth_proto), type);
    else
        compare_be(pattern.ethernet, offsetof(rte_flow_item_eth, hdr.ether_type), type);
    return pattern;
}

void add_ipv4(flow_pattern& pattern, const flow_match& match) noexcept
{
    constexpr std::uint8_t all = 0xff;
    pattern.ipv4.has = true;
    compare(pattern.ipv4, offsetof(rte_flow_item_ipv4, hdr.src_addr), match.ipv4_source);
    compare(pattern.ipv4, offsetof(rte_flow_item_ipv4, hdr.dst_addr), match.ipv4_destination);
    if (match.ip_protocol && !needs_l4(match))
        compare(pattern.ipv4, offsetof(rte_flow_item_ipv4, hdr.next_proto_id), *match.ip_protocol, all);
}

void add_ipv6(flow_pattern& pattern, const flow_match& match) noexcept
{
    constexpr std::uint8_t all = 0xff;
    pattern.ipv6.has = true;
    compare(pattern.ipv6, offsetof(rte_flow_item_ipv6, hdr.src_addr), match.ipv6_source);
    compare(pattern.ipv6, offsetof(rte_flow_item_ipv6, hdr.dst_addr), match.ipv6_destination);
    if (match.ip_protocol && !needs_l4(match))
        compare(pattern.ipv6, offsetof(rte_flow_item_ipv6, hdr.proto), *match.ip_protocol, all);
}

void add_udp(flow_pattern& pattern, const flow_match& match) noexcept
{
    add_ports(pattern.udp, offsetof(rte_flow_item_udp, hdr.src_port), offsetof(rte_flow_item_udp, hdr.dst_port), match);
}

void add_tcp(flow_pattern& pattern, const flow_match& match) noexcept
{
    add_ports(pattern.tcp, offsetof(rte_flow_item_tcp, hdr.src_port), offsetof(rte_flow_item_tcp, hdr.dst_port), match);
    if (match.tcp_flags)
        compare(pattern.tcp, offsetof(rte_flow_item_tcp, hdr.tcp_flags), match.tcp_flags->value, match.tcp_flags->mask);
}

/// The patterns with one of IPv4, IPv6 or neither, as `match` wants.
std::vector<flow_pattern> with_ip(const flow_pattern& link, const flow_match& match)
{
    const bool v4 = match.ipv4_source || match.ipv4_destination || match.ether_type == net::ether_type_ipv4;
    const bool v6 = match.ipv6_source || match.ipv6_destination || match.ether_type == net::ether_type_ipv6;
    const bool any = !v4 && !v6 && (match.ip_protocol || needs_l4(match));
    std::vector<flow_pattern> patterns;
    if (v4 || any)
        add_ipv4(patterns.emplace_back(link), match);
    if ((v6 || any) && !(match.ip_protocol && is_extension(*match.ip_protocol)))
        add_ipv6(patterns.emplace_back(link), match);
    if (!v4 && !v6 && !any)
        patterns.push_back(link);
    return patterns;
}

/// The patterns with one of UDP, TCP or neither, as `match` wants.
std::vector<flow_pattern> with_l4(const std::vector<flow_pattern>& below, const flow_match& match)
{
    if (!needs_l4(match))
        return below;
    std::vector<flow_pattern> patterns;
    for (const flow_pattern& each : below) {
        if (!match.tcp_flags && match.ip_protocol.value_or(IPPROTO_UDP) == IPPROTO_UDP)
            add_udp(patterns.emplace_back(each), match);
        if (match.ip_protocol.value_or(IPPROTO_TCP) == IPPROTO_TCP)
            add_tcp(patterns.emplace_back(each), match);
    }
    return patterns;
}

} // namespace

std::array<rte_flow_item, 5> flow_pattern::items() const noexcept
{
    std::array<rte_flow_item, 5> items{};
    std::size_t count = 0;
    const auto add = [&](rte_flow_item_type type, const auto& header) {
        if (!header.has)
            return;
        items[count].type = type;
        items[count].spec = header.compares ? &header.value : nullptr;
        items[count].mask = header.compares ? &header.mask : nullptr;
        ++count;
    };
    add(RTE_FLOW_ITEM_TYPE_ETH, ethernet);
    add(RTE_FLOW_ITEM_TYPE_VLAN, vlan);
    add(RTE_FLOW_ITEM_TYPE_IPV4, ipv4);
    add(RTE_FLOW_ITEM_TYPE_IPV6, ipv6);
    add(RTE_FLOW_ITEM_TYPE_UDP, udp);
    add(RTE_FLOW_ITEM_TYPE_TCP, tcp);
    items[count].type = RTE_FLOW_ITEM_TYPE_END;
    return items;
}

flow_patterns to_patterns(const flow_match& match)
{
    if (std::string why = why_not_the_link(match); !why.empty())
        return {{}, why};
    if (std::string why = why_not_the_ports(match); !why.empty())
        return {{}, why};
    std::vector<flow_pattern> all = with_l4(with_ip(link_pattern(match), match), match);
    return {all, all.empty() ? "no packet can match" : ""};
}

} // namespace weftio::dpdk
