// What specs of several forms have in common.
#pragma once

#include <string>
#include <string_view>

namespace weftio::dpdk {

/// A unique name for a virtual device. Short, because net_ring puts a prefix before it and has 28 characters in all.
std::string device_name(std::string_view driver);
/// The interfaces of the calling thread's network namespace, for error texts.
std::string interface_names();
/// Returns `value`, a name or path, if it can be a devargs value: DPDK splits these at commas and cannot quote. Throws
/// weftio::error errc::invalid_argument.
const std::string& plain(std::string_view spec, const std::string& value);
/// Requires an interface whose frames have an Ethernet header, in the network namespace of the calling thread. Throws
/// weftio::error errc::invalid_argument, errc::not_found, errc::not_supported.
void require_interface(std::string_view spec, const std::string& name);
/// Throws weftio::error errc::permission_denied.
void require_raw_sockets(std::string_view spec);

} // namespace weftio::dpdk
