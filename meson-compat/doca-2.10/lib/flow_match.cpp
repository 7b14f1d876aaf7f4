#include "flow_match.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <bit>
#include <cstring>
#include <limits>

#include "object.hpp"

namespace weftio::doca {
namespace {

constexpr std::uint16_t ipv4_type = 0x0800;

/// A field of a pipe and of its entry.
template <class T>
struct field {
    T value;
    T mask; ///< bits that are compared
};

/// The value of a field to compare, and its mask; mask 0: the field is not compared.
template <class T>
field<T> resolved(T pipe, const T* mask, const T* entry)
{
    constexpr T all = std::numeric_limits<T>::max();
    const bool is_of_entry = pipe == all;
    if (mask)
        return {static_cast<T>((is_of_entry && entry ? *entry : pipe) & *mask), *mask};
    if (pipe == 0 || (is_of_entry && !entry))
        return {0, 0};
    return {is_of_entry ? *entry : pipe, all};
}

template <class T>
std::optional<T> whole(const field<T>& resolved, const char* name)
{
    constexpr T all = std::numeric_limits<T>::max();
    require(resolved.mask == 0 || resolved.mask == all, DOCA_ERROR_NOT_SUPPORTED,
            "the mask {:#x} of {} compares some of its bits; compare all or none", resolved.mask, name);
    return resolved.mask ? std::optional(resolved.value) : std::nullopt;
}

std::optional<ipv4_prefix> prefix(const field<std::uint32_t>& resolved, const char* name)
{
    const std::uint32_t mask = ntohl(resolved.mask);
    const int length = std::countl_one(mask);
    require(std::popcount(mask) == length, DOCA_ERROR_NOT_SUPPORTED, "the mask {:#x} of {} has other than leading ones",
            mask, name);
    if (!length)
        return {};
    ipv4_prefix result;
    std::memcpy(result.address.data(), &resolved.value, sizeof resolved.value);
    result.length = static_cast<std::uint8_t>(length);
    return result;
}

std::optional<port_range> port_of(const field<std::uint16_t>& resolved, const char* name)
{
    const auto port = whole(resolved, name);
    return port ? std::optional(port_range{ntohs(*port), ntohs(*port)}) : std::nullopt;
}

/// Sets what a type of layer 3 or 4 says, unless the packet's own field says it.
template <class T>
void imply(std::optional<T>& condition, bool is_said, T value)
{
    if (is_said && !condition)
        condition = value;
}

/// The same member of the pipe's match, its mask and the entry's.
#define FIELD(MEMBER) resolved(pipe.MEMBER, mask ? &mask->MEMBER : nullptr, entry ? &entry->MEMBER : nullptr)

void imply_types(flow_match& match, const doca_flow_match& pipe)
{
    const bool is_tcp =
        pipe.parser_meta.outer_l4_type == DOCA_FLOW_L4_META_TCP || pipe.outer.l4_type_ext == DOCA_FLOW_L4_TYPE_EXT_TCP;
    const bool is_udp =
        pipe.parser_meta.outer_l4_type == DOCA_FLOW_L4_META_UDP || pipe.outer.l4_type_ext == DOCA_FLOW_L4_TYPE_EXT_UDP;
    const bool is_icmp = pipe.parser_meta.outer_l4_type == DOCA_FLOW_L4_META_ICMP ||
                         pipe.outer.l4_type_ext == DOCA_FLOW_L4_TYPE_EXT_ICMP;
    const bool is_ipv4 =
        pipe.parser_meta.outer_l3_type == DOCA_FLOW_L3_META_IPV4 || pipe.outer.l3_type == DOCA_FLOW_L3_TYPE_IP4;
    imply(match.ether_type, is_ipv4, ipv4_type);
    imply(match.ip_protocol, is_tcp, std::uint8_t{IPPROTO_TCP});
    imply(match.ip_protocol, is_udp, std::uint8_t{IPPROTO_UDP});
    imply(match.ip_protocol, is_icmp, std::uint8_t{IPPROTO_ICMP});
    const bool has_addresses = match.ipv4_source || match.ipv4_destination;
    imply(match.ether_type, has_addresses, ipv4_type);
}

template <class T>
bool is_one_value(const std::optional<T>& one, const std::optional<T>& other, std::optional<T>& result)
{
    result = one ? one : other;
    return !one || !other || *one == *other;
}

std::uint32_t bits_of(const ipv4_prefix& prefix)
{
    std::uint32_t address;
    std::memcpy(&address, prefix.address.data(), sizeof address);
    return ntohl(address);
}

bool is_narrower(const std::optional<ipv4_prefix>& one, const std::optional<ipv4_prefix>& other,
                 std::optional<ipv4_prefix>& result)
{
    result = !one || (other && other->length > one->length) ? other : one;
    if (!one || !other)
        return true;
    const auto length = std::min(one->length, other->length);
    return length == 0 || (bits_of(*one) ^ bits_of(*other)) >> (32 - length) == 0;
}

bool is_one_port(const std::optional<port_range>& one, const std::optional<port_range>& other,
                 std::optional<port_range>& result)
{
    result = one ? one : other;
    return !one || !other || one->first == other->first;
}

bool has_both_flags(const std::optional<tcp_flags_match>& one, const std::optional<tcp_flags_match>& other,
                    std::optional<tcp_flags_match>& result)
{
    result = one ? one : other;
    if (!one || !other)
        return true;
    result = tcp_flags_match{static_cast<std::uint8_t>((one->value & one->mask) | (other->value & other->mask)),
                             static_cast<std::uint8_t>(one->mask | other->mask)};
    return ((one->value ^ other->value) & one->mask & other->mask) == 0;
}

} // namespace

namespace {

void require_types(const doca_flow_match& pipe)
{
    require(pipe.parser_meta.outer_l3_type <= DOCA_FLOW_L3_META_IPV4 &&
                pipe.parser_meta.outer_l4_type <= DOCA_FLOW_L4_META_ICMP,
            DOCA_ERROR_INVALID_VALUE, "types {} and {} in parser_meta are none of DOCA_FLOW_L3_META_*, _L4_META_*",
            pipe.parser_meta.outer_l3_type, pipe.parser_meta.outer_l4_type);
    require(pipe.outer.l3_type >= DOCA_FLOW_L3_TYPE_NONE && pipe.outer.l3_type <= DOCA_FLOW_L3_TYPE_IP4 &&
                pipe.outer.l4_type_ext >= DOCA_FLOW_L4_TYPE_EXT_NONE &&
                pipe.outer.l4_type_ext <= DOCA_FLOW_L4_TYPE_EXT_ICMP,
            DOCA_ERROR_INVALID_VALUE, "types {} and {} in outer are none of DOCA_FLOW_L3_TYPE_*, _L4_TYPE_EXT_*",
            pipe.outer.l3_type, pipe.outer.l4_type_ext);
}

} // namespace

flow_match conditions(const doca_flow_match& pipe, const doca_flow_match* mask, const doca_flow_match* entry)
{
    require_types(pipe);
    flow_match match;
    if (const auto type = whole(FIELD(outer.eth.type), "eth.type"))
        match.ether_type = ntohs(*type);
    match.ipv4_source = prefix(FIELD(outer.ip4.src_ip), "ip4.src_ip");
    match.ipv4_destination = prefix(FIELD(outer.ip4.dst_ip), "ip4.dst_ip");
    match.ip_protocol = whole(FIELD(outer.ip4.next_proto), "ip4.next_proto");
    match.source_port = port_of(FIELD(outer.tcp.l4_port.src_port), "l4_port.src_port");
    match.destination_port = port_of(FIELD(outer.tcp.l4_port.dst_port), "l4_port.dst_port");
    if (const auto flags = FIELD(outer.tcp.flags); flags.mask)
        match.tcp_flags = tcp_flags_match{flags.value, mask ? flags.mask : flags.value};
    imply_types(match, pipe);
    if (match.tcp_flags)
        imply(match.ip_protocol, true, std::uint8_t{IPPROTO_TCP});
    return match;
}

std::optional<flow_match> both(const flow_match& one, const flow_match& other)
{
    flow_match match;
    const bool can_match = is_one_value(one.ether_type, other.ether_type, match.ether_type) &&
                           is_one_value(one.ip_protocol, other.ip_protocol, match.ip_protocol) &&
                           is_narrower(one.ipv4_source, other.ipv4_source, match.ipv4_source) &&
                           is_narrower(one.ipv4_destination, other.ipv4_destination, match.ipv4_destination) &&
                           is_one_port(one.source_port, other.source_port, match.source_port) &&
                           is_one_port(one.destination_port, other.destination_port, match.destination_port) &&
                           has_both_flags(one.tcp_flags, other.tcp_flags, match.tcp_flags);
    return can_match ? std::optional(match) : std::nullopt;
}

} // namespace weftio::doca
