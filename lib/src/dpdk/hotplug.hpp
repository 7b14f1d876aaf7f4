// Devices come and go while EAL runs.
#pragma once

#include <string>

namespace weftio::nic {

/// As rte_eal_hotplug_add and rte_eal_hotplug_remove, from any thread: DPDK's list of device arguments has no lock
/// (22.11), so one device comes or goes at a time. Both block until the driver is done.
int add_device(const char* bus, const std::string& name, const std::string& arguments);
int remove_device(const char* bus, const std::string& name) noexcept;

/// net_ring makes 16 rings, and frees as many as the port has queues (DPDK 22.11) but no frame in them. The first
/// frees the frames, before the device is removed; the second the rings, when it has gone.
void empty_rings_of(const std::string& device) noexcept;
void free_rings_of(const std::string& device) noexcept;

} // namespace weftio::nic
