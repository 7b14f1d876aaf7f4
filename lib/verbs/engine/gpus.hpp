// Memory of GPUs that the program has allocated by the CUDA driver.
#pragma once

#include <cstddef>
#include <optional>

#include "weftio/device.hpp"

namespace weftio::verbs {

/// Adopts memory that the CPU cannot access, because the driver that the program has loaded says that it is a GPU's.
/// Never blocks, but for the first memory of each GPU, whose primary context it opens. Any thread.
///
/// @return nothing: the address is not a GPU's, the CPU can access it too (pinned or managed memory), or the program
///   has not loaded the driver
/// @throws error errc::invalid_argument the allocation has fewer bytes there; others: as device::open and device::adopt
std::optional<memory> adopt_gpu_memory(void* address, std::size_t bytes);

} // namespace weftio::verbs
