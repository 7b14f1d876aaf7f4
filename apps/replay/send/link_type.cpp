#include "send/link_type.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "reader/fields.hpp"
#include "send/wifi.hpp"

namespace weftio::replay {

namespace {

constexpr std::uint16_t type_ipv4 = 0x0800, type_ipv6 = 0x86dd, first_type = 0x0600;

bool is_raw_ip(link_type type)
{
    return type == link_type::raw || type == link_type::raw_bsd || type == link_type::raw_openbsd ||
           type == link_type::ipv4 || type == link_type::ipv6;
}

std::uint16_t type_of_ip(std::span<const std::byte> packet)
{
    if (packet.empty())
        return 0;
    auto version = std::to_integer<unsigned>(packet[0]) >> 4;
    return version == 4 ? type_ipv4 : version == 6 ? type_ipv6 : std::uint16_t{0};
}

/// Takes the destination MAC of a multicast or broadcast IP packet from its IP address; other packets keep the address
/// that they have.
void address_by_ip(ethernet_parts& parts)
{
    fields packet(parts.payload, big_endian);
    if (parts.type == type_ipv4 && packet.size() >= 20) {
        std::uint32_t to = packet.u32(16);
        if (to == 0xffffffff)
            parts.destination.fill(0xff);
        else if (to >> 28 == 14)
            parts.destination = {0x01,
                                 0x00,
                                 0x5e,
                                 static_cast<std::uint8_t>(to >> 16 & 0x7f),
                                 static_cast<std::uint8_t>(to >> 8),
                                 static_cast<std::uint8_t>(to)};
    } else if (parts.type == type_ipv6 && packet.size() >= 40 && packet.u8(24) == 0xff) {
        parts.destination = {0x33, 0x33, packet.u8(36), packet.u8(37), packet.u8(38), packet.u8(39)};
    }
}

parts_or raw_ip(std::span<const std::byte> bytes)
{
    ethernet_parts parts{.type = type_of_ip(bytes), .payload = bytes};
    if (bytes.empty())
        return not_convertible::runt;
    if (parts.type == 0)
        return not_convertible::link_type;
    address_by_ip(parts);
    return parts;
}

/// Skips four bytes of address family, whose numbers differ between systems; the IP version of the packet tells the
/// same.
parts_or loopback(std::span<const std::byte> bytes)
{
    return bytes.size() <= 4 ? parts_or(not_convertible::runt) : raw_ip(bytes.subspan(4));
}

/// LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2, which have the same fields at different offsets.
parts_or cooked(std::span<const std::byte> bytes, bool second)
{
    constexpr std::uint16_t frad = 770, ipgre = 778, radiotap = 803, netlink = 824;
    constexpr unsigned broadcast = 1;
    const std::size_t header_bytes = second ? 20 : 16;
    if (bytes.size() < header_bytes)
        return not_convertible::runt;
    fields header(bytes, big_endian);
    std::uint16_t hardware = header.u16(second ? 8 : 2), protocol = header.u16(second ? 0 : 14);
    bool foreign = hardware == frad || hardware == ipgre || hardware == radiotap || hardware == netlink;
    constexpr std::uint16_t llc = 4;
    if (foreign || (protocol < first_type && protocol != llc))
        return not_convertible::link_type;
    ethernet_parts parts{.type = protocol == llc ? std::uint16_t{0} : protocol, .payload = bytes.subspan(header_bytes)};
    unsigned sent_to = second ? header.u8(10) : header.u16(0), address_bytes = second ? header.u8(11) : header.u16(4);
    if (address_bytes == parts.source.size())
        for (std::size_t at = 0; at < parts.source.size(); ++at)
            parts.source[at] = header.u8((second ? 12 : 6) + at);
    if (sent_to == broadcast)
        parts.destination.fill(0xff);
    else
        address_by_ip(parts);
    return parts;
}

parts_or parts_of(const frame& captured)
{
    auto type = static_cast<link_type>(captured.link_type);
    if (is_raw_ip(type))
        return raw_ip(captured.bytes);
    // Bytes left of an FCS that the radiotap header announces: none if the reader has removed it.
    std::uint32_t missing = captured.original_bytes - std::min(captured.captured_bytes, captured.original_bytes);
    std::uint32_t fcs_left = captured.fcs_bytes != 0 ? 0 : fcs_802_11 - std::min(missing, fcs_802_11);
    switch (type) {
        case link_type::bsd_loopback:
        case link_type::openbsd_loopback: return loopback(captured.bytes);
        case link_type::linux_cooked: return cooked(captured.bytes, false);
        case link_type::linux_cooked_2: return cooked(captured.bytes, true);
        case link_type::ieee_802_11: return from_802_11(captured.bytes);
        case link_type::radiotap: return from_radiotap(captured.bytes, fcs_left);
        default: return not_convertible::link_type;
    }
}

} // namespace

std::optional<not_convertible> ethernet_maker::convert(frame& captured)
{
    if (static_cast<link_type>(captured.link_type) == link_type::ethernet)
        return std::nullopt;
    parts_or found = parts_of(captured);
    if (const auto* reason = std::get_if<not_convertible>(&found))
        return *reason;
    const auto& parts = std::get<ethernet_parts>(found);
    room_.clear();
    for (const auto& address : {parts.destination, parts.source})
        for (std::uint8_t byte : address)
            room_.push_back(std::byte{byte});
    // IEEE 802.3: below 0x0600 it is the length of what follows, here an LLC header.
    auto type =
        parts.type != 0 ? parts.type : static_cast<std::uint16_t>(std::min<std::size_t>(parts.payload.size(), 1500));
    room_.push_back(static_cast<std::byte>(type >> 8));
    room_.push_back(static_cast<std::byte>(type));
    room_.insert(room_.end(), parts.payload.begin(), parts.payload.end());
    std::uint32_t missing = captured.original_bytes - std::min(captured.captured_bytes, captured.original_bytes);
    captured.bytes = room_;
    captured.captured_bytes = static_cast<std::uint32_t>(room_.size());
    captured.original_bytes = captured.captured_bytes + missing;
    captured.link_type = link_type_ethernet;
    ++converted_;
    return std::nullopt;
}

} // namespace weftio::replay
