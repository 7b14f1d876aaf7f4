// What the driver says of an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "devices/cuda/cuda_device.hpp"

namespace weftio::devices::cuda {

/// Who has made memory of a GPU.
enum class maker : std::uint8_t { mem_alloc, mem_map, pool, unknown };

/// An allocation, or a whole mapping of cuMemMap().
struct address_info {
    maker made_by = maker::mem_alloc;
    unsigned type = 0; ///< memory_type_host, or a device's
    bool managed = false;
    int gpu = 0; ///< N of cuda:N
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    std::uint64_t buffer =
        0; ///< its ID: no other allocation of the process ever has it; of a mapping, the reservation's
    std::uint64_t block = 0; ///< of a mapping: the ID of the physical memory; 0: the driver tells none

    bool is_of_host() const noexcept { return type == memory_type_host; }
};

/// What cuMemMap() has mapped at an address, as a whole.
struct mapping {
    std::uintptr_t begin;
    std::size_t bytes;
    std::uint64_t block;

    friend bool operator==(const mapping&, const mapping&) = default;
};

/// Asks in the context of the caller's thread, or, if it has none, in that of `gpu`. Any thread; never blocks.
template <class T>
result ask(const cuda_device& gpu, T& value, pointer_attribute attribute, std::uintptr_t address) noexcept
{
    const result status = gpu.api().cuPointerGetAttribute(&value, attribute, address);
    if (status != invalid_context) [[likely]]
        return status;
    const current_context now(gpu.api(), gpu.primary(), std::nothrow);
    return gpu.api().cuPointerGetAttribute(&value, attribute, address);
}

std::optional<mapping> mapping_at(const cuda_device& gpu, std::uintptr_t address) noexcept;

/// Memory of any GPU, or of the host; nothing: no driver knows the address, or nothing is mapped there.
/// Throws weftio::error errc::device_error.
std::optional<address_info> look_up(const cuda_device& gpu, std::uintptr_t address);

} // namespace weftio::devices::cuda
