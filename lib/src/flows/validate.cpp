#include "flows/validate.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <netinet/in.h>

#include "nic/backend.hpp"
#include "weftio/error.hpp"

namespace weftio::flows {
namespace {

constexpr std::uint16_t untagged = 0xffff;
constexpr std::uint16_t max_vlan_id = 4095;
constexpr std::size_t most_rss_queues = 128; // entries of an mlx5 indirection table
constexpr std::uint16_t ether_type_ipv4 = 0x0800;
constexpr std::uint16_t ether_type_ipv6 = 0x86dd;

[[noreturn]] void refuse(std::string_view who, const std::string& text)
{
    throw error(errc::invalid_argument, fmt::format("{}: {}", who, text));
}

template <class Prefix>
void check_prefix(std::string_view who, const char* field, const std::optional<Prefix>& prefix)
{
    if (!prefix)
        return;
    constexpr std::size_t bits = sizeof(prefix->address) * 8;
    if (prefix->length > bits)
        refuse(who, fmt::format("{}: prefix length {} is longer than the address; set 0 to {}", field, prefix->length,
                                bits));
}

void check_range(std::string_view who, const char* field, const std::optional<port_range>& range)
{
    if (range && range->last < range->first)
        refuse(who, fmt::format("{}: the range {} to {} ends before it starts; swap the two", field, range->first,
                                range->last));
}

void check_family(std::string_view who, const flow_match& match)
{
    const bool ipv4 = match.ipv4_source || match.ipv4_destination;
    const bool ipv6 = match.ipv6_source || match.ipv6_destination;
    if (ipv4 && ipv6)
        refuse(who, "no packet has both IPv4 and IPv6 addresses; make two rules");
    if (match.ether_type &&
        ((ipv4 && *match.ether_type != ether_type_ipv4) || (ipv6 && *match.ether_type != ether_type_ipv6)))
        refuse(who, fmt::format("ether_type {:#06x} does not carry {} addresses; leave ether_type out",
                                *match.ether_type, ipv4 ? "IPv4" : "IPv6"));
}

void check_protocol(std::string_view who, const flow_match& match)
{
    if (!match.ip_protocol || *match.ip_protocol == IPPROTO_TCP)
        return;
    if (match.tcp_flags)
        refuse(who,
               fmt::format("ip_protocol {} has no TCP flags; leave ip_protocol out or give 6", *match.ip_protocol));
    if ((match.source_port || match.destination_port) && *match.ip_protocol != IPPROTO_UDP)
        refuse(who, fmt::format("only UDP and TCP have ports, not ip_protocol {}; set 17 or 6", *match.ip_protocol));
}

std::size_t most_queues(std::string_view who, flow_kind what)
{
    switch (what) {
        case flow_kind::queue: return 1;
        case flow_kind::rss: return most_rss_queues;
        case flow_kind::drop: return 0;
    }
    refuse(who, fmt::format("action {} is unknown; use flow_action::to, rss or drop", static_cast<int>(what)));
}

} // namespace

void validate(std::string_view who, const flow_match& match)
{
    check_prefix(who, "ipv4_source", match.ipv4_source);
    check_prefix(who, "ipv4_destination", match.ipv4_destination);
    check_prefix(who, "ipv6_source", match.ipv6_source);
    check_prefix(who, "ipv6_destination", match.ipv6_destination);
    check_range(who, "source_port", match.source_port);
    check_range(who, "destination_port", match.destination_port);
    if (match.vlan && *match.vlan > max_vlan_id && *match.vlan != untagged)
        refuse(who,
               fmt::format("vlan: id {} is above 4095; give 0 to 4095, or 0xffff for untagged packets", *match.vlan));
    check_family(who, match);
    check_protocol(who, match);
}

void validate(std::string_view who, const flow_action& action, const nic::backend& port)
{
    const std::size_t most = most_queues(who, action.what);
    if (most > 0 && action.queues.empty())
        refuse(who, "the action has no queue; name at least one");
    if (action.queues.size() > most)
        refuse(who, fmt::format("the action has {} queues; its kind accepts at most {}", action.queues.size(), most));
    if (action.key != rss_key::standard && action.key != rss_key::symmetric)
        refuse(who, fmt::format("key {} is unknown; use rss_key::standard or symmetric", static_cast<int>(action.key)));
    for (const eth_rxq* queue : action.queues) {
        if (queue == nullptr)
            refuse(who, "the action has a null queue; name an eth_rxq of this port");
        if (!*queue)
            refuse(who, "the action names a moved-from eth_rxq; name the one that it was moved to");
        if (&detail::internals::backend(*queue) != &port)
            refuse(who, fmt::format("queue {} belongs to another port; make the rule on the queue's own port",
                                    queue->number()));
    }
}

} // namespace weftio::flows
