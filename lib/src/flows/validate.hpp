// Checks of flow rules.
#pragma once

#include <string_view>

#include "weftio/flow.hpp"

namespace weftio::flows {

/// Checks a match without its port. Any thread; never blocks. @param who  what is checked: how the error text begins
/// @throws weftio::error errc::invalid_argument a prefix longer than its address, a range that ends before it starts, a
///         VLAN id above 4095 that is not 0xffff, IPv4 and IPv6 in one rule (an ether type counts too), or ports or TCP
///         flags of a protocol that has none
void validate(std::string_view who, const flow_match& match);

/// Checks that `action` names as many queues as its kind takes, all of them of `port`.
/// @throws weftio::error errc::invalid_argument no queue, too many (1 for `queue`, 128 for `rss`, 0 for `drop`), a null
///         one, or one of another port
void validate(std::string_view who, const flow_action& action, const nic::backend& port);

} // namespace weftio::flows
