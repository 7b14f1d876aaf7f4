// The spec iface:NAME: which driver takes the interface.
#pragma once

#include <cstdint>
#include <string_view>

#include "dpdk/port_spec.hpp"

namespace weftio::dpdk {

/// Chooses AF_XDP, then AF_PACKET, where AF_XDP would receive every packet and take none from Linux that Linux needs;
/// else AF_PACKET alone, and notes why. With "xdp=only" it is AF_XDP or an error, also where Linux needs the packets.
/// @param words   NAME or NAME,xdp=only
/// @param queues  of the port, in each direction
/// @param mtu     wanted; 0: the interface's
/// Throws weftio::error errc::invalid_argument, errc::not_found, errc::permission_denied, errc::not_supported.
port_spec interface_spec(std::string_view spec, std::string_view words, unsigned queues, std::uint32_t mtu);

} // namespace weftio::dpdk
