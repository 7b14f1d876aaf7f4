// A rule's match in the words of DPDK's rte_flow.
#pragma once

#include <array>
#include <string>
#include <vector>

#include <rte_flow.h>

#include "weftio/flow_match.hpp"

namespace weftio::dpdk {

/// A pattern: Ethernet, then a VLAN tag, an IP and an L4 header, each if `has` says so.
struct flow_pattern {
    template <class Item>
    struct header {
        bool has = false;
        bool compares = false; ///< some field is compared; otherwise the header must only be there
        Item value{};
        Item mask{};
    };
    header<rte_flow_item_eth> ethernet;
    header<rte_flow_item_vlan> vlan;
    header<rte_flow_item_ipv4> ipv4;
    header<rte_flow_item_ipv6> ipv6;
    header<rte_flow_item_udp> udp;
    header<rte_flow_item_tcp> tcp;

    /// The items, with an end. They point into this object.
    std::array<rte_flow_item, 5> items() const noexcept;
};

struct flow_patterns {
    std::vector<flow_pattern> all; ///< at most 4; empty: the match cannot be given to a driver
    std::string why_none;
};

/// Patterns that match packets of `match`, and nothing else: a driver may be told to drop what they match. They need
/// not match all packets of `match`: behind several VLAN tags, extension headers of IPv6 and in fragments drivers see
/// different things. Throws std::bad_alloc.
flow_patterns to_patterns(const flow_match& match);

} // namespace weftio::dpdk
