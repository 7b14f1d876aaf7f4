// The kernel's side of a tap port.
#pragma once

#include <string>

#include "address.hpp"

namespace weftio::packets {

/// Gives a network interface the address and sets it up, as "ip addr add" and "ip link set up" do. Blocks for some ms.
/// @throws std::runtime_error what ip(8) said
void set_up_peer(const std::string& interface, const address& peer);

} // namespace weftio::packets
