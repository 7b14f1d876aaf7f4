// Memory of a GPU that belongs to no context and no process: whoever holds a descriptor of it can map it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "devices/cuda/cuda_device.hpp"
#include "weftio/device.hpp"

namespace weftio::devices::cuda {

struct shared_memory {
    int descriptor = -1; ///< the caller's
    std::size_t bytes = 0;
};

/// Makes memory that other processes can map, and NICs reach: both is set when it is made, and never later. At least so
/// many bytes, zeroed.
/// @throws weftio::error errc::not_supported the driver or the GPU cannot do that; errc::out_of_memory;
///         errc::device_error
shared_memory make_shared_memory(cuda_device& gpu, std::size_t bytes);

/// A descriptor of memory that a program has made so and mapped at the address.
/// @throws weftio::error errc::not_supported the memory cannot be shared, and why; errc::not_reachable it is another
///         GPU's
shared_memory export_shared_memory(const cuda_device& gpu, std::uintptr_t address);

/// Maps all of it, at addresses of its own. The memory keeps the mapping. The descriptor stays the caller's.
/// @throws weftio::error errc::invalid_argument the descriptor is none of the driver's, or has fewer bytes;
///         errc::not_reachable it is another GPU's; errc::device_error
memory map_shared_memory(const device& on, const shared_memory& what);

} // namespace weftio::devices::cuda
