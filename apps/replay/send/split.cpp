#include "send/split.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "send/edit.hpp"
#include "send/packet.hpp"

namespace weftio::replay {

namespace {

constexpr std::size_t most_pairs = 1u << 20;

/// A SYN without ACK is a client's, a SYN with ACK a server's; nothing for other packets.
std::optional<bool> sent_by_client(const ip_packet& packet)
{
    constexpr std::uint8_t tcp = 6, syn = 0x02, ack = 0x10;
    if (packet.protocol != tcp || !packet.first_fragment || packet.bytes - packet.payload < 14)
        return std::nullopt;
    std::uint8_t flags = packet.frame[packet.payload + 13];
    return flags & syn ? std::optional(!(flags & ack)) : std::nullopt;
}

bool comes_from(const ip_packet& packet, const std::vector<split_options::network>& networks)
{
    return std::any_of(networks.begin(), networks.end(), [&](const split_options::network& net) {
        return net.bytes == packet.address_bytes() && same_prefix(packet.source(), net.address.data(), net.bits);
    });
}

side to_side(bool first)
{
    return first ? side::first : side::second;
}

} // namespace

std::optional<split_options> parse_split(std::string_view text)
{
    using rule = split_options::rule;
    constexpr std::string_view cidr = "cidr=";
    if (text == "client" || text == "server" || text == "port")
        return split_options{.by = text == "client" ? rule::client : text == "server" ? rule::server : rule::port};
    if (!text.starts_with(cidr))
        return std::nullopt;
    split_options made{.by = rule::cidr};
    for (text.remove_prefix(cidr.size()); made.networks.empty() || !text.empty();) {
        std::string_view one = text.substr(0, text.find(','));
        split_options::network net{.bytes = one.find(':') == std::string_view::npos ? 4u : 16u};
        if (!parse_prefix(one, net.bytes, net.address, net.bits))
            return std::nullopt;
        made.networks.push_back(net);
        text.remove_prefix(std::min(text.size(), one.size() + 1));
    }
    return made;
}

std::size_t splitter::hash::operator()(const pair_of_addresses& addresses) const noexcept
{
    return std::hash<std::string_view>{}({reinterpret_cast<const char*>(addresses.data()), addresses.size()});
}

side splitter::side_of(const frame& captured)
{
    using rule = split_options::rule;
    constexpr std::size_t headers = 256; // addresses and ports lie within these bytes
    frame ethernet = captured;
    if (options_.by == rule::none || maker_.convert(ethernet))
        return to_side(options_.by != rule::server);
    room_.resize(std::min(ethernet.bytes.size(), headers));
    std::memcpy(room_.data(), ethernet.bytes.data(), room_.size());
    auto packet = find_ip(room_.data(), static_cast<std::uint32_t>(room_.size()));
    if (!packet)
        return to_side(options_.by != rule::server);
    if (options_.by == rule::cidr)
        return to_side(comes_from(*packet, options_.networks));
    if (options_.by == rule::port) {
        constexpr std::uint16_t first_unreserved = 1024;
        auto port = port_of(*packet, port_end::destination);
        return to_side(port && *port < first_unreserved);
    }
    return by_client(*packet);
}

side splitter::by_client(const ip_packet& packet)
{
    unsigned bytes = packet.address_bytes();
    bool source_is_lower = std::memcmp(packet.source(), packet.destination(), bytes) <= 0;
    pair_of_addresses key{};
    std::memcpy(key.data(), source_is_lower ? packet.source() : packet.destination(), bytes);
    std::memcpy(key.data() + 16, source_is_lower ? packet.destination() : packet.source(), bytes);
    auto found = lower_is_client_.find(key);
    if (found == lower_is_client_.end()) {
        if (lower_is_client_.size() == most_pairs)
            return to_side(options_.by == split_options::rule::client);
        bool source_is_client = sent_by_client(packet).value_or(true);
        found = lower_is_client_.emplace(key, source_is_client == source_is_lower).first;
    }
    return to_side(found->second == source_is_lower);
}

} // namespace weftio::replay
