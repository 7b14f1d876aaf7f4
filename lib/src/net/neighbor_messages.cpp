#include "net/neighbor_messages.hpp"

#include <algorithm>
#include <cstring>

#include "net/byte_order.hpp"

namespace weftio::net {

namespace {

constexpr std::uint16_t arp_type = 0x0806;
constexpr std::uint8_t icmpv6 = 58, solicitation = 135, advertisement = 136;
constexpr std::uint8_t source_mac_option = 1, target_mac_option = 2;
constexpr std::size_t arp_bytes = 28, solicitation_bytes = 24, option_bytes = 8;
/// What an ARP message over Ethernet about IPv4 begins with, before the operation.
constexpr std::array<std::uint8_t, 6> arp_begin{0, 1, 8, 0, 6, 4};
constexpr mac_address everybody{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr roce_gid no_address{};
constexpr roce_gid all_nodes{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
/// The group of all whose address ends in the same three bytes (RFC 4291, 2.7.1); these are to be filled in.
constexpr roce_gid solicited_group{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0};

bool is_single_host(const mac_address& mac) noexcept
{
    return (mac[0] & 1) == 0 && mac != mac_address{};
}

/// Of IPv4, what is not multicast, reserved, or broadcast; of IPv6, what is not multicast, nor of IPv4.
bool is_single_host(const roce_gid& address, bool ipv6) noexcept
{
    if (address == no_address || is_ipv4(address) == ipv6)
        return false;
    return ipv6 ? !is_group(address) : address[12] < 224;
}

bool is_host_or_nobody(const roce_gid& address, bool ipv6) noexcept
{
    return address == no_address || is_single_host(address, ipv6);
}

roce_gid group_of(const roce_gid& address) noexcept
{
    roce_gid group = solicited_group;
    std::copy(address.end() - 3, address.end(), group.end() - 3);
    return group;
}

template <class Array>
Array load(const std::uint8_t* from) noexcept
{
    Array value;
    std::copy_n(from, value.size(), value.begin());
    return value;
}

/// The address 0.0.0.0 is that of nobody, as :: is.
roce_gid load_ipv4(const std::uint8_t* from) noexcept
{
    const auto address = load<std::array<std::uint8_t, 4>>(from);
    return address == std::array<std::uint8_t, 4>{} ? no_address : gid_of_ipv4(address);
}

void store_ipv4(std::uint8_t* to, const roce_gid& address) noexcept
{
    std::copy(address.end() - 4, address.end(), to);
}

/// RFC 1071, over the pseudo header of IPv6 and the message: 0 where the checksum in it is right.
std::uint16_t icmpv6_sum(const roce_gid& source, const roce_gid& destination,
                         std::span<const std::uint8_t> message) noexcept
{
    std::uint64_t sum = message.size() + icmpv6;
    for (std::size_t at = 0; at < source.size(); at += 2)
        sum += load_be<std::uint16_t>(&source[at]) + std::uint64_t{load_be<std::uint16_t>(&destination[at])};
    for (std::size_t at = 0; at < message.size(); at += 2)
        sum += at + 1 < message.size() ? load_be<std::uint16_t>(&message[at]) : std::uint64_t{message[at]} << 8;
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

bool parse_arp(std::span<const std::uint8_t> arp, neighbor_message& message) noexcept
{
    if (arp.size() < arp_bytes || !std::equal(arp_begin.begin(), arp_begin.end(), arp.begin()))
        return false;
    const auto operation = load_be<std::uint16_t>(&arp[6]);
    const roce_gid sender = load_ipv4(&arp[14]), target = load_ipv4(&arp[24]);
    message = {.asks = operation == 1, .mac = load<mac_address>(&arp[8]), .source = sender};
    message.target = message.asks ? target : sender;
    message.addressee = message.asks ? no_address : target;
    return (operation == 1 || operation == 2) && is_single_host(message.mac) && is_single_host(message.target, false) &&
           is_host_or_nobody(message.source, false);
}

/// Finds the MAC in the options of a message. @return false: an option has no length, or does not fit
bool find_mac(std::span<const std::uint8_t> options, std::uint8_t kind, mac_address& mac) noexcept
{
    while (!options.empty()) {
        const std::size_t bytes = options.size() < 2 ? 0 : options[1] * option_bytes;
        if (bytes == 0 || bytes > options.size())
            return false;
        if (options[0] == kind)
            mac = load<mac_address>(&options[2]);
        options = options.subspan(bytes);
    }
    return true;
}

/// @param ethernet_source  stands for the MAC of a message that names none
bool parse_discovery(std::span<const std::uint8_t> icmp, const packet_headers& headers,
                     const mac_address& ethernet_source, neighbor_message& message) noexcept
{
    const roce_gid& source = headers.source;
    const roce_gid& destination = headers.destination;
    if (icmp.size() < solicitation_bytes || icmp[1] != 0 || icmpv6_sum(source, destination, icmp) != 0)
        return false;
    message = {.asks = icmp[0] == solicitation, .mac = ethernet_source, .source = source};
    message.target = load<roce_gid>(&icmp[8]);
    if (!find_mac(icmp.subspan(solicitation_bytes), message.asks ? source_mac_option : target_mac_option, message.mac))
        return false;
    if (!message.asks) {
        message.source = message.target;
        message.addressee = is_group(destination) ? no_address : destination;
    }
    // Who has no address yet asks the group only.
    const bool nobody_asks_us = message.asks && source == no_address && destination != group_of(message.target);
    return (icmp[0] == solicitation || icmp[0] == advertisement) && is_single_host(message.mac) &&
           is_single_host(message.target, true) && is_host_or_nobody(message.source, true) && !nobody_asks_us;
}

/// Writes Ethernet. @return where the rest begins
std::size_t put_ethernet(std::span<std::uint8_t> to, const neighbor_frame& path, const mac_address& destination,
                         std::uint16_t type) noexcept
{
    std::copy(destination.begin(), destination.end(), to.begin());
    std::copy(path.source_mac.begin(), path.source_mac.end(), to.begin() + 6);
    std::size_t at = 12;
    for (std::size_t tag = 0; tag < path.tag_count; ++tag, at += 4) {
        store_be(&to[at], path.tags[tag].type);
        store_be(&to[at + 2], path.tags[tag].tci);
    }
    store_be(&to[at], type);
    return at + 2;
}

std::size_t put_arp(std::span<std::uint8_t> to, const neighbor_frame& path, const roce_gid& source,
                    const mac_address& target_mac, const roce_gid& target, bool asks) noexcept
{
    const std::size_t begin = put_ethernet(to, path, asks ? everybody : target_mac, arp_type);
    std::uint8_t* const arp = &to[begin];
    std::copy(arp_begin.begin(), arp_begin.end(), arp);
    store_be<std::uint16_t>(arp + 6, asks ? 1 : 2);
    std::copy(path.source_mac.begin(), path.source_mac.end(), arp + 8);
    store_ipv4(arp + 14, source);
    std::copy(target_mac.begin(), target_mac.end(), arp + 18);
    store_ipv4(arp + 24, target);
    return begin + arp_bytes;
}

/// @param flags  of an advertisement: the first byte behind the checksum
std::size_t put_discovery(std::span<std::uint8_t> to, const neighbor_frame& path, const mac_address& destination_mac,
                          const roce_gid& source, const roce_gid& destination, const roce_gid& target,
                          std::uint8_t type, std::uint8_t flags) noexcept
{
    const std::size_t begin = put_ethernet(to, path, destination_mac, ether_type_ipv6);
    std::uint8_t* const ip = &to[begin];
    constexpr std::size_t bytes = solicitation_bytes + option_bytes;
    std::fill_n(ip, ipv6_header_bytes + bytes, std::uint8_t{0});
    ip[0] = 6 << 4;
    store_be<std::uint16_t>(ip + 4, bytes);
    ip[6] = icmpv6;
    ip[7] = 255; // tells the receiver that no router has forwarded the message
    std::copy(source.begin(), source.end(), ip + 8);
    std::copy(destination.begin(), destination.end(), ip + 24);
    std::uint8_t* const icmp = ip + ipv6_header_bytes;
    icmp[0] = type;
    icmp[4] = flags;
    std::copy(target.begin(), target.end(), icmp + 8);
    icmp[24] = type == solicitation ? source_mac_option : target_mac_option;
    icmp[25] = 1; // in units of 8 bytes
    std::copy(path.source_mac.begin(), path.source_mac.end(), icmp + 26);
    store_be(icmp + 2, icmpv6_sum(source, destination, {icmp, bytes}));
    return begin + ipv6_header_bytes + bytes;
}

} // namespace

bool is_group(const roce_gid& address) noexcept
{
    return is_ipv4(address) ? (address[12] & 0xf0) == 0xe0 : address[0] == 0xff;
}

mac_address mac_of_group(const roce_gid& group) noexcept
{
    if (is_ipv4(group))
        return {0x01, 0x00, 0x5e, static_cast<std::uint8_t>(group[13] & 0x7f), group[14], group[15]};
    return {0x33, 0x33, group[12], group[13], group[14], group[15]};
}

bool parse_neighbor(std::span<const std::uint8_t> frame, const packet_headers& headers,
                    neighbor_message& message) noexcept
{
    if (headers.ether_type == arp_type && headers.l3_offset != 0 && headers.l3_offset <= frame.size())
        return parse_arp(frame.subspan(headers.l3_offset), message);
    const std::size_t begin = headers.l3_offset + ipv6_header_bytes;
    if (headers.l3 != l3_kind::ipv6 || headers.protocol != icmpv6 || !headers.has_protocol || headers.fragment ||
        headers.l4_offset != begin || headers.l3_end > frame.size() || headers.l3_end < begin ||
        frame[headers.l3_offset + 7] != 255)
        return false;
    return parse_discovery(frame.subspan(begin, headers.l3_end - begin), headers, load<mac_address>(&frame[6]),
                           message);
}

std::size_t build_question(std::span<std::uint8_t> to, const neighbor_frame& path, const roce_gid& source,
                           const roce_gid& target) noexcept
{
    if (is_ipv4(target))
        return put_arp(to, path, source, {}, target, true);
    const roce_gid group = group_of(target);
    return put_discovery(to, path, mac_of_group(group), source, group, target, solicitation, 0);
}

std::size_t build_answer(std::span<std::uint8_t> to, const neighbor_frame& path,
                         const neighbor_message& question) noexcept
{
    constexpr std::uint8_t solicited = 0x40, overrides = 0x20;
    if (is_ipv4(question.target))
        return put_arp(to, path, question.target, question.mac, question.source, false);
    if (question.source == no_address)
        return put_discovery(to, path, mac_of_group(all_nodes), question.target, all_nodes, question.target,
                             advertisement, overrides);
    return put_discovery(to, path, question.mac, question.target, question.source, question.target, advertisement,
                         solicited | overrides);
}

} // namespace weftio::net
