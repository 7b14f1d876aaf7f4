// What `--check` says of NICs that reach a GPU's memory by themselves: kernel modules, and their paths over PCIe.
#pragma once

#include <filesystem>
#include <string>

#include "report.hpp"
#include "storage/topology.hpp"

namespace weftio::files {

/// What lies between two devices, the best first.
enum class pcie_path { switches, one_root, one_socket, sockets, unknown };

/// @param root  has sys, for the sockets of NUMA nodes
pcie_path path_between(const storage::topology& trees, std::size_t one, std::size_t other,
                       const std::filesystem::path& root);

/// Section GPUDIRECT RDMA. Blocks for files.
/// @param root  has proc, sys and etc
section gpudirect(const storage::topology& trees, const std::filesystem::path& root);

} // namespace weftio::files
