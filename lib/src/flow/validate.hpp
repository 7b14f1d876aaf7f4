// What a flow rule may say.
#pragma once

#include "weftio/flow.hpp"

namespace weftio::detail {

/// Checks a match by itself. Any thread; does not block.
/// @throws weftio::error errc::invalid_argument a prefix longer than its address, a range that ends before it starts, a
/// VLAN id
///         above 4095 that is not 0xffff, IPv4 and IPv6 in one rule (an ether type counts as well), or a protocol that
///         has no such ports or TCP flags
void validate(const flow_match& match);

/// Checks that `action` names as many queues as its kind takes, all of them of `port`.
/// @throws weftio::error errc::invalid_argument no queue, too many (1 for `queue`, 128 for `rss`, 0 for `drop`), a null
/// one, or
///         one of another port
void validate(const flow_action& action, const nic::backend& port);

} // namespace weftio::detail
