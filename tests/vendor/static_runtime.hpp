// Stands in for CUDA's runtime, linked statically.
#pragma once

#include <cstddef>

namespace static_runtime {

/// Finds the driver's functions, once. Returns false if there is no driver.
bool start();
int free(void* memory);
int free_in_order(void* memory);
int unmap(void* at, std::size_t bytes);
int reset_device(int device);

} // namespace static_runtime
