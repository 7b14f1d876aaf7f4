// The driver's functions for physical memory and addresses apart from each other.
#pragma once

#include <cstddef>

#include "devices/cuda/driver.hpp"

namespace weftio::devices::cuda {

using physical = unsigned long long; ///< CUmemGenericAllocationHandle

/// CUmemLocation of the driver's ABI.
struct memory_location {
    int type, number;
};
/// CUmemAllocationProp.
struct physical_properties {
    int type, handle_types;
    memory_location location;
    void* metadata;
    unsigned char compression, rdma_capable;
    unsigned short usage;
    unsigned char reserved[4];
};
static_assert(sizeof(physical_properties) == 32);
/// CUmemAccessDesc.
struct memory_access {
    memory_location location;
    int flags;
};
static_assert(sizeof(memory_access) == 12);

inline constexpr int physical_pinned = 1, location_device = 1, handle_descriptor = 1, access_read_write = 3;

struct mapping_functions {
    result (*cuMemGetAllocationGranularity)(std::size_t*, const physical_properties*, int);
    result (*cuMemCreate)(physical*, std::size_t, const physical_properties*, unsigned long long);
    result (*cuMemRelease)(physical);
    result (*cuMemAddressReserve)(device_pointer*, std::size_t, std::size_t, device_pointer, unsigned long long);
    result (*cuMemAddressFree)(device_pointer, std::size_t);
    result (*cuMemMap)(device_pointer, std::size_t, std::size_t, physical, unsigned long long);
    result (*cuMemUnmap)(device_pointer, std::size_t);
    result (*cuMemSetAccess)(device_pointer, std::size_t, const memory_access*, std::size_t);
    result (*cuMemExportToShareableHandle)(void*, physical, int, unsigned long long);
    result (*cuMemImportFromShareableHandle)(physical*, void*, int);
    result (*cuMemRetainAllocationHandle)(physical*, void*);
    result (*cuMemGetAllocationPropertiesFromHandle)(physical_properties*, physical);
};

/// @throws weftio::error as the_driver(); errc::not_supported the driver lacks one
const mapping_functions& mapping_driver();

} // namespace weftio::devices::cuda
