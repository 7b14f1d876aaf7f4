#include "nic/soft/overlap.hpp"

#include <algorithm>
#include <cstddef>

#include <netinet/in.h>

namespace weftio::nic::soft {
namespace {

template <class Value>
bool differ(const std::optional<Value>& a, const std::optional<Value>& b) noexcept
{
    return a && b && *a != *b;
}

template <class Prefix>
bool apart(const std::optional<Prefix>& a, const std::optional<Prefix>& b) noexcept
{
    if (!a || !b)
        return false;
    const unsigned bits = std::min(a->length, b->length);
    for (unsigned bit = 0; bit < bits; ++bit)
        if (((a->address[bit / 8] ^ b->address[bit / 8]) & 0x80u >> bit % 8) != 0)
            return true;
    return false;
}

bool apart(const std::optional<port_range>& a, const std::optional<port_range>& b) noexcept
{
    return a && b && (a->last < b->first || b->last < a->first);
}

bool apart(const std::optional<tcp_flags_match>& a, const std::optional<tcp_flags_match>& b) noexcept
{
    return a && b && ((a->value ^ b->value) & a->mask & b->mask) != 0;
}

/// The ether type of all packets that match, if the match says so.
std::optional<std::uint16_t> ether_type(const flow_match& match) noexcept
{
    if (match.ipv4_source || match.ipv4_destination)
        return std::uint16_t{0x0800};
    if (match.ipv6_source || match.ipv6_destination)
        return std::uint16_t{0x86dd};
    return match.ether_type;
}

bool takes_protocol(const flow_match& match, std::uint8_t protocol) noexcept
{
    const bool ports = match.source_port || match.destination_port;
    return (!match.ip_protocol || *match.ip_protocol == protocol) && (!match.tcp_flags || protocol == IPPROTO_TCP) &&
           (!ports || protocol == IPPROTO_TCP || protocol == IPPROTO_UDP);
}

bool have_no_protocol_in_common(const flow_match& a, const flow_match& b) noexcept
{
    // A match takes one protocol by its number, or TCP among others.
    const std::uint8_t candidates[] = {a.ip_protocol.value_or(IPPROTO_TCP), b.ip_protocol.value_or(IPPROTO_TCP)};
    return std::none_of(std::begin(candidates), std::end(candidates), [&](std::uint8_t protocol) {
        return takes_protocol(a, protocol) && takes_protocol(b, protocol);
    });
}

} // namespace

bool may_overlap(const flow_match& a, const flow_match& b) noexcept
{
    return !differ(ether_type(a), ether_type(b)) && !differ(a.vlan, b.vlan) && !apart(a.ipv4_source, b.ipv4_source) &&
           !apart(a.ipv4_destination, b.ipv4_destination) && !apart(a.ipv6_source, b.ipv6_source) &&
           !apart(a.ipv6_destination, b.ipv6_destination) && !have_no_protocol_in_common(a, b) &&
           !apart(a.source_port, b.source_port) && !apart(a.destination_port, b.destination_port) &&
           !apart(a.tcp_flags, b.tcp_flags);
}

} // namespace weftio::nic::soft
