// Starts DPDK's EAL once per process, or adopts one that the application has started.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace weftio::dpdk {

/// Starts EAL unless it runs. Blocks while it starts; any thread. Later calls return at once and ignore their
/// arguments. The caller keeps the returned pointer for as long as it needs EAL.
///
/// An EAL that runs already belongs to the application: its settings and its log stay as they are. Otherwise EAL starts
/// in memory, without a PCI scan unless `pci`, with hugepages if some are free and ordinary pages otherwise; the
/// calling thread keeps its CPU affinity. EAL is cleaned up once the process exits and nobody holds the pointer. Throws
/// weftio::error errc::device_error with EAL's own log lines, errc::invalid_argument for an extra argument that asks
/// for help, errc::not_supported in a child of the process in which EAL runs, errc::closed when the process exits.
///
/// @param queues  queues of the first port: without hugepages EAL's memory is fixed at its start, some 50 MB for each
///                queue and 512 MB at least
std::shared_ptr<const void> start_environment(bool pci, const std::vector<std::string>& extra_arguments,
                                              unsigned queues = 1);

/// The last errors and warnings that EAL or a driver has logged in this process since `forget_driver_log`, joined by
/// "; ", for error texts. If the application has started EAL, a pointer to the application's own log.
std::string driver_log();
void forget_driver_log();

} // namespace weftio::dpdk
