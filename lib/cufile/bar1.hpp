// The window of a GPU's memory that PCIe shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace weftio::cufile {

/// Size of BAR1 of the NVIDIA GPU with that index, in order of PCI addresses; none: no such GPU.
/// @param devices  a folder like /sys/bus/pci/devices
std::optional<std::uint64_t> bar1_bytes(const std::filesystem::path& devices, std::size_t index);

} // namespace weftio::cufile
