// Which way bytes take between a storage device and a GPU.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "storage/configuration.hpp"
#include "storage/topology.hpp"

namespace weftio::storage {

/// A decision, and why.
struct route {
    bool dynamic = false; ///< a policy decided; else P2P, or the compatible way, as without routing
    routing_policy policy = routing_policy::p2p;
    std::optional<std::size_t> device{};      ///< the NIC or drive that was chosen
    std::optional<std::size_t> staging_gpu{}; ///< has the staging buffer; none: no GPU has
    int numa = -1;                            ///< node of a staging buffer in host memory; -1: any
    std::string reason{};                     ///< a sentence
};

/// Decides for a storage device (a NIC or a drive) and a GPU: the first policy of the configuration's order that
/// applies. Nodes are indices in `in`.
route decide_route(const topology& in, const configuration& by, std::size_t device, std::size_t gpu);

/// What the files of a mount are read from.
struct storage_devices {
    std::string file_system{}, mount{};
    std::vector<std::string> drives{}; ///< block devices, for a local file system: "nvme0n1"
};

/// Decides for a mount and a GPU. Its devices are its drives and the NICs that the configuration names for it; a device
/// in the GPU's PCIe tree comes first, then the one whose policy comes first.
route decide_route(const topology& in, const configuration& by, const storage_devices& of, std::size_t gpu);

} // namespace weftio::storage
