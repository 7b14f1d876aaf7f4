#include "send/edit.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include "send/packet.hpp"

namespace weftio::replay {

namespace {

constexpr std::uint32_t ethernet_bytes = 14, tag_bytes = 4, shortest_frame = 60;

void put_prefix(std::uint8_t* to, const std::uint8_t* prefix, unsigned bits)
{
    for (unsigned byte = 0; byte < (bits + 7) / 8; ++byte) {
        unsigned here = std::min(8u, bits - byte * 8);
        auto mask = static_cast<std::uint8_t>(0xff << (8 - here));
        to[byte] = static_cast<std::uint8_t>((prefix[byte] & mask) | (to[byte] & ~mask));
    }
}

void map_address(const ip_packet& packet, std::uint8_t* at, const std::vector<address_map>& maps)
{
    for (const address_map& map : maps)
        if (map.bytes == packet.address_bytes() && same_prefix(at, map.from.data(), map.from_bits)) {
            std::array<std::uint8_t, 16> address{};
            std::copy_n(at, map.bytes, address.begin());
            put_prefix(address.data(), map.to.data(), map.to_bits);
            replace_address(packet, at, address.data());
            return;
        }
}

/// Adds `step` to the last four bytes of an address.
void move_address(const ip_packet& packet, std::uint8_t* at, std::uint32_t step)
{
    std::array<std::uint8_t, 16> address{};
    unsigned bytes = packet.address_bytes();
    std::copy_n(at, bytes, address.begin());
    std::uint32_t host = 0;
    std::memcpy(&host, &address[bytes - 4], sizeof host);
    host = htonl(ntohl(host) + step);
    std::memcpy(&address[bytes - 4], &host, sizeof host);
    replace_address(packet, at, address.data());
}

} // namespace

bool same_prefix(const std::uint8_t* a, const std::uint8_t* b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    return std::equal(a, a + whole, b) && (rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0);
}

bool parse_prefix(std::string_view text, unsigned bytes, std::array<std::uint8_t, 16>& address, unsigned& bits)
{
    std::size_t slash = text.find('/');
    bits = bytes * 8;
    if (slash != std::string_view::npos) {
        auto [end, error] = std::from_chars(text.data() + slash + 1, text.data() + text.size(), bits);
        if (error != std::errc{} || end != text.data() + text.size() || bits > bytes * 8)
            return false;
    }
    return ::inet_pton(bytes == 4 ? AF_INET : AF_INET6, std::string(text.substr(0, slash)).c_str(), address.data()) ==
           1;
}

const char* to_string(skip_reason reason) noexcept
{
    switch (reason) {
        case skip_reason::link_type: return "link_type";
        case skip_reason::runt: return "runt";
        case skip_reason::oversize: return "oversize";
        case skip_reason::filter: return "filter";
        default: return "unknown";
    }
}

std::optional<mac_address> parse_mac(std::string_view text)
{
    mac_address address{};
    if (text.size() != 17)
        return std::nullopt;
    for (std::size_t byte = 0; byte < address.size(); ++byte) {
        const char* at = text.data() + byte * 3;
        auto [end, error] = std::from_chars(at, at + 2, address[byte], 16);
        if (error != std::errc{} || end != at + 2 || (byte < 5 && at[2] != ':'))
            return std::nullopt;
    }
    return address;
}

std::optional<address_map> parse_address_map(std::string_view text)
{
    address_map map;
    std::size_t equal = text.find('=');
    if (equal == std::string_view::npos)
        return std::nullopt;
    map.bytes = text.find(':') == std::string_view::npos ? 4 : 16;
    if (!parse_prefix(text.substr(0, equal), map.bytes, map.from, map.from_bits) ||
        !parse_prefix(text.substr(equal + 1), map.bytes, map.to, map.to_bits))
        return std::nullopt;
    return map;
}

std::optional<port_map> parse_port_map(std::string_view text)
{
    auto take = [&text](std::uint16_t& port) {
        auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        return error == std::errc{};
    };
    auto take_sign = [&text](char sign) {
        bool there = !text.empty() && text[0] == sign;
        text.remove_prefix(there ? 1 : 0);
        return there;
    };
    port_map map;
    if (!take(map.first))
        return std::nullopt;
    map.last = map.first;
    if (take_sign('-') && !take(map.last))
        return std::nullopt;
    if (!take_sign('=') || !take(map.to) || !text.empty() || map.last < map.first)
        return std::nullopt;
    return map;
}

std::optional<ttl_change> parse_ttl(std::string_view text)
{
    ttl_change change{.relative = !text.empty() && (text[0] == '+' || text[0] == '-')};
    bool down = change.relative && text[0] == '-';
    text.remove_prefix(change.relative ? 1 : 0);
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), change.by);
    if (error != std::errc{} || end != text.data() + text.size() || change.by < 1 || change.by > 255)
        return std::nullopt;
    change.by = down ? -change.by : change.by;
    return change;
}

std::optional<skip_reason> editor::apply(const frame& from, std::uint64_t pass, std::uint8_t* to, std::uint32_t& bytes)
{
    if (from.link_type == link_type_ethernet)
        return apply_to_ethernet(from, pass, to, bytes);
    frame made = from;
    if (auto reason = maker_.convert(made))
        return *reason == not_convertible::runt ? skip_reason::runt : skip_reason::link_type;
    return apply_to_ethernet(made, pass, to, bytes);
}

std::optional<skip_reason> editor::apply_to_ethernet(const frame& from, std::uint64_t pass, std::uint8_t* to,
                                                     std::uint32_t& bytes)
{
    if (from.bytes.size() < ethernet_bytes)
        return skip_reason::runt;
    std::uint32_t whole = from.captured_bytes, written = copy(from, to);
    bool had_tag = from.bytes.size() >= ethernet_bytes + tag_bytes &&
                   is_vlan_tag(reinterpret_cast<const std::uint8_t*>(from.bytes.data()) + 12);
    if (options_.vlan_pop && had_tag)
        whole -= tag_bytes;
    if (options_.vlan_push)
        whole += tag_bytes;
    std::uint32_t header = ethernet_bytes + (is_vlan_tag(to + 12) ? 2 * tag_bytes : 0), longest = mtu_ + header;
    if (whole > longest) {
        if (!options_.truncate) {
            wanted_mtu_ = std::max(wanted_mtu_, whole - header);
            return skip_reason::oversize;
        }
        written = longest;
        ++truncated_;
    }
    edit_headers(to, written, pass);
    bytes = std::max(written, shortest_frame);
    std::fill(to + written, to + bytes, std::uint8_t{0});
    return std::nullopt;
}

/// Copies as much of the frame as fits, with other MACs and tags. Returns the bytes written.
std::uint32_t editor::copy(const frame& from, std::uint8_t* to) const
{
    const auto* begin = reinterpret_cast<const std::uint8_t*>(from.bytes.data());
    const auto* end = begin + from.bytes.size();
    std::uint8_t* at = std::copy_n(begin, 12, to);
    if (options_.destination_mac)
        std::copy(options_.destination_mac->begin(), options_.destination_mac->end(), to);
    if (options_.source_mac)
        std::copy(options_.source_mac->begin(), options_.source_mac->end(), to + 6);
    begin += 12;
    if (options_.vlan_pop && end - begin >= 6 && is_vlan_tag(begin))
        begin += tag_bytes;
    if (options_.vlan_push) {
        const std::array<std::uint8_t, 4> tag{0x81, 0x00, static_cast<std::uint8_t>(*options_.vlan_push >> 8),
                                              static_cast<std::uint8_t>(*options_.vlan_push)};
        at = std::copy(tag.begin(), tag.end(), at);
    }
    auto fits = std::min<std::ptrdiff_t>(end - begin, to + room_bytes() - at);
    return static_cast<std::uint32_t>(std::copy_n(begin, fits, at) - to);
}

void editor::edit_fields(const ip_packet& packet) const
{
    if (options_.ttl) {
        int before = options_.ttl->relative ? ttl_of(packet) : 0;
        replace_ttl(packet, static_cast<std::uint8_t>(std::clamp(before + options_.ttl->by, 1, 255)));
    }
    if (options_.dscp)
        replace_dscp(packet, *options_.dscp);
    for (port_end end : {port_end::source, port_end::destination})
        if (auto port = options_.ports.empty() ? std::nullopt : port_of(packet, end))
            for (const port_map& map : options_.ports)
                if (*port >= map.first && *port <= map.last) {
                    replace_port(packet, end, map.to);
                    break;
                }
}

void editor::edit_headers(std::uint8_t* frame, std::uint32_t bytes, std::uint64_t pass) const
{
    bool fields = options_.ttl || options_.dscp || !options_.ports.empty();
    if (options_.maps.empty() && !fields && !options_.fix_checksums && (!options_.unique_ip || pass == 0))
        return;
    auto packet = find_ip(frame, bytes);
    if (!packet)
        return;
    map_address(*packet, packet->source(), options_.maps);
    map_address(*packet, packet->destination(), options_.maps);
    if (options_.unique_ip && pass != 0) {
        // In opposite directions, so that both directions of a flow stay one flow.
        auto step = static_cast<std::uint32_t>(pass);
        bool up = std::memcmp(packet->source(), packet->destination(), packet->address_bytes()) > 0;
        move_address(*packet, packet->source(), up ? step : 0u - step);
        move_address(*packet, packet->destination(), up ? 0u - step : step);
    }
    edit_fields(*packet);
    if (options_.fix_checksums)
        fix_checksums(*packet);
}

} // namespace weftio::replay
