// Why a DPDK device is not opened. @param spec  of the port, for error texts
#pragma once

#include <string>
#include <string_view>

struct rte_eth_dev_info;

namespace weftio::dpdk {

/// Throws weftio::error for a negative errno of DPDK. @param what  failed
[[noreturn]] void fail_to_open(std::string_view spec, std::string_view what, int result);
/// Throws weftio::error errc::not_found: no driver that EAL has loaded takes the virtual device.
[[noreturn]] void refuse_without_driver(std::string_view spec, const std::string& device);
/// Throws weftio::error for the negative errno with which the driver refused an MTU.
[[noreturn]] void refuse_mtu(std::string_view spec, std::string_view driver, unsigned mtu, int result);
/// Throws weftio::error errc::out_of_memory.
[[noreturn]] void refuse_for_want_of_memory(std::string_view spec, unsigned queues);
/// Throws weftio::error errc::not_supported if the device has fewer queues in a direction.
void require_queues(std::string_view spec, const rte_eth_dev_info& info, unsigned queues);
/// Throws weftio::error errc::not_supported if the device needs physical addresses and EAL runs without them.
void require_physical_addresses(std::string_view spec, const std::string& device);
/// The errno behind a result of rte_eal_hotplug_add(): EAL returns -EFAULT for a name without a driver, and -1, which
/// looks like -EPERM, for whatever a driver refused.
int meaning_of(int attach_result);
/// The text of a failure to open the port, without the part that names the port.
std::string_view cause(std::string_view spec, std::string_view text);

} // namespace weftio::dpdk
