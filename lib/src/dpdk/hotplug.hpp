// Adds and removes DPDK devices while EAL runs.
#pragma once

#include <string>

namespace weftio::dpdk {

/// rte_eal_hotplug_add and rte_eal_hotplug_remove, from any thread, one at a time: DPDK's list of device arguments has
/// no lock (22.11). Both block until the driver is done.
int add_device(const char* bus, const std::string& name, const std::string& arguments);
int remove_device(const char* bus, const std::string& name) noexcept;

/// net_ring makes 16 rings, of which DPDK 22.11 frees only as many as the port has queues, and no frame in them. Call
/// empty_rings_of() before the device is removed to free the frames, free_rings_of() afterwards to free the rings.
void empty_rings_of(const std::string& device) noexcept;
void free_rings_of(const std::string& device) noexcept;

} // namespace weftio::dpdk
