// Which GPU is how far from which core, port and other GPU, and what in the machine's setup slows them down.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "storage/topology.hpp"

namespace weftio::bench {

/// What NVIDIA's libraries say about a GPU; nothing: they do not say it.
struct driver_facts {
    struct gpu {
        std::optional<std::uint64_t> bar1_bytes{}, bar1_used_bytes{};
        std::optional<bool> persistence{}, dma_buf{};
        std::optional<unsigned> nvlinks{}; ///< active ones
    };

    std::map<std::string, gpu> gpus{}; ///< by PCI address
    std::string no_management{};       ///< why libnvidia-ml.so.1 says nothing; empty: it does
    std::string no_cuda{};             ///< why libcuda.so.1 says nothing; empty: it does
};

/// Asks libnvidia-ml.so.1 and libcuda.so.1, opened now, about the GPUs of this machine. Blocks while they start.
driver_facts ask_driver(const storage::topology& trees);

/// Writes the distances and the checks, a line each. What cannot be read says why.
/// @param root   folder that has `sys` and `proc`; "/" for this machine
/// @param trees  of the same machine, with its NVLinks
std::string describe_topology(const std::filesystem::path& root, const storage::topology& trees,
                              const driver_facts& driver);

/// Both for the machine at `root`; NVIDIA's libraries are asked only about this one.
std::string describe_machine(const std::filesystem::path& root);

} // namespace weftio::bench
