// Paths where programs look for devices. The engine's tree has them, and the preloaded library redirects them to the
// tree.
#pragma once

namespace weftio::verbs {

/// Folder of the nodes.
inline constexpr const char* node_folder = "/dev/infiniband";
/// PCIe root of all devices. No host has its domain, 7765.
inline constexpr const char* pci_root = "/sys/devices/pci7765:00";
/// Folder with links to all PCIe devices of a host, and the prefix of the names of our links there.
inline constexpr const char *pci_links = "/sys/bus/pci/devices", *pci_domain = "7765:";
/// The connection manager of librdmacm: its name in the folder of nodes, and its folder.
inline constexpr const char *connection_manager_name = "rdma_cm",
                            *connection_manager_folder = "/sys/class/misc/rdma_cm";
/// Folders that belong to Weftio with everything below them.
inline constexpr const char* our_folders[] = {node_folder,
                                              "/sys/class/infiniband_verbs",
                                              "/sys/class/infiniband",
                                              "/sys/class/infiniband_mad",
                                              connection_manager_folder,
                                              pci_root};

/// Prefix of the folders in which processes keep the files of their devices, and the name of the socket in them
/// (weftio-run --show).
inline constexpr const char *folder_prefix = "weftio-run-", *show_name = "show";

} // namespace weftio::verbs
