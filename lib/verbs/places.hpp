// Where programs look for devices: paths that the engine's tree has, and that the preloaded library sends there.
#pragma once

namespace weftio::verbs {

/// Folder of the nodes.
inline constexpr const char* node_folder = "/dev/infiniband";
/// PCIe root of all devices. Its domain, 7765, is one that no host has.
inline constexpr const char* pci_root = "/sys/devices/pci7765:00";
/// Folder of links to all PCIe devices of a host, and how names of ours begin there.
inline constexpr const char *pci_links = "/sys/bus/pci/devices", *pci_domain = "7765:";
/// Folders that belong to Weftio with all that lies below.
inline constexpr const char* our_folders[] = {node_folder, "/sys/class/infiniband_verbs", "/sys/class/infiniband",
                                              "/sys/class/infiniband_mad", pci_root};

/// Begin of the names of the folders that processes have for their devices, and the socket there (weftio-run --show).
inline constexpr const char *folder_prefix = "weftio-run-", *show_name = "show";

} // namespace weftio::verbs
