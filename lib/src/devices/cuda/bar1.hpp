// The window of a GPU's memory that PCIe shows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace weftio::devices::cuda {

/// Bytes of a GPU's memory that PCIe shows at once; 0: unknown.
/// @param device  its folder in sys/bus/pci/devices
std::uint64_t bar1_bytes(const std::filesystem::path& device);
struct bar1_use {
    std::uint64_t total, free;
};
/// As NVML reports it; nothing: there is no NVML, or it does not know. Blocks while that starts.
/// @param address  of the GPU on PCIe: "0000:3b:00.0"
std::optional<bar1_use> bar1_use_of(const std::string& address);
/// What is free of them.
/// @param address  of the GPU on PCIe: "0000:3b:00.0"
std::optional<std::uint64_t> free_bar1_bytes(const std::string& address);

} // namespace weftio::devices::cuda
