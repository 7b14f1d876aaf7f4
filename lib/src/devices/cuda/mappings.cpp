#include "devices/cuda/mappings.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::devices::cuda {

namespace {

template <class Function>
void find_mapping(void* library, const char* name, Function& entry)
{
    entry = reinterpret_cast<Function>(dlsym(library, name));
    if (!entry)
        throw error(errc::not_supported, fmt::format("weftio: cuda: this driver has no {}, by which memory is mapped; "
                                                     "install one for CUDA 12 or newer",
                                                     name));
}

mapping_functions found_mappings()
{
    (void)the_driver();
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    mapping_functions made{};
#define WEFTIO_FIND(NAME) find_mapping(library, #NAME, made.NAME)
    WEFTIO_FIND(cuMemGetAllocationGranularity);
    WEFTIO_FIND(cuMemCreate);
    WEFTIO_FIND(cuMemRelease);
    WEFTIO_FIND(cuMemAddressReserve);
    WEFTIO_FIND(cuMemAddressFree);
    WEFTIO_FIND(cuMemMap);
    WEFTIO_FIND(cuMemUnmap);
    WEFTIO_FIND(cuMemSetAccess);
    WEFTIO_FIND(cuMemExportToShareableHandle);
    WEFTIO_FIND(cuMemImportFromShareableHandle);
    WEFTIO_FIND(cuMemRetainAllocationHandle);
    WEFTIO_FIND(cuMemGetAllocationPropertiesFromHandle);
#undef WEFTIO_FIND
    return made;
}

} // namespace

const mapping_functions& mapping_driver()
{
    static const mapping_functions only = found_mappings();
    return only;
}

} // namespace weftio::devices::cuda
