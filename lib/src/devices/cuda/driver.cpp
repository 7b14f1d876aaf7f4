#include "devices/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

#include "weftio/error.hpp"

namespace weftio::devices::cuda {

namespace {

template <class Function>
void find_if_there(void* library, const char* name, Function& entry)
{
    entry = reinterpret_cast<Function>(dlsym(library, name));
}

template <class Function>
void find(void* library, const char* name, Function& entry)
{
    find_if_there(library, name, entry);
    if (!entry)
        throw error(errc::not_supported,
                    fmt::format("weftio: cuda: this driver has no {}; install a driver for CUDA 12 or newer", name));
}

void find_functions(void* library, driver& made)
{
#define WEFTIO_FIND(NAME) find(library, #NAME, made.NAME)
    WEFTIO_FIND(cuInit);
    WEFTIO_FIND(cuDriverGetVersion);
    WEFTIO_FIND(cuDeviceGetCount);
    WEFTIO_FIND(cuDeviceGet);
    WEFTIO_FIND(cuDeviceGetByPCIBusId);
    WEFTIO_FIND(cuDeviceGetName);
    WEFTIO_FIND(cuDeviceGetAttribute);
    WEFTIO_FIND(cuDeviceCanAccessPeer);
    WEFTIO_FIND(cuDevicePrimaryCtxRetain);
    WEFTIO_FIND(cuDevicePrimaryCtxRelease_v2);
    WEFTIO_FIND(cuCtxPushCurrent_v2);
    WEFTIO_FIND(cuCtxPopCurrent_v2);
    WEFTIO_FIND(cuCtxEnablePeerAccess);
    WEFTIO_FIND(cuMemAlloc_v2);
    WEFTIO_FIND(cuMemFree_v2);
    WEFTIO_FIND(cuMemHostAlloc);
    WEFTIO_FIND(cuMemFreeHost);
    WEFTIO_FIND(cuMemsetD8Async);
    WEFTIO_FIND(cuMemsetD32Async);
    WEFTIO_FIND(cuMemcpyAsync);
    WEFTIO_FIND(cuMemcpyDtoHAsync_v2);
    WEFTIO_FIND(cuMemcpyHtoDAsync_v2);
    WEFTIO_FIND(cuMemcpy2DAsync_v2);
    WEFTIO_FIND(cuStreamWriteValue32_v2);
    WEFTIO_FIND(cuStreamWaitValue32_v2);
    WEFTIO_FIND(cuFlushGPUDirectRDMAWrites);
    WEFTIO_FIND(cuMemGetHandleForAddressRange);
    WEFTIO_FIND(cuPointerGetAttribute);
    WEFTIO_FIND(cuPointerSetAttribute);
    WEFTIO_FIND(cuModuleLoadData);
    WEFTIO_FIND(cuModuleGetFunction);
    WEFTIO_FIND(cuModuleUnload);
    WEFTIO_FIND(cuFuncGetAttribute);
    WEFTIO_FIND(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    WEFTIO_FIND(cuLaunchKernel);
    WEFTIO_FIND(cuStreamCreate);
    WEFTIO_FIND(cuStreamDestroy_v2);
    WEFTIO_FIND(cuLaunchHostFunc);
    WEFTIO_FIND(cuStreamQuery);
    WEFTIO_FIND(cuStreamSynchronize);
    WEFTIO_FIND(cuGetErrorName);
    WEFTIO_FIND(cuGetErrorString);
    WEFTIO_FIND(cuCtxGetFlags);
    find_if_there(library, "cuCtxSetFlags", made.cuCtxSetFlags);
    find_if_there(library, "cuDevicePrimaryCtxGetState", made.cuDevicePrimaryCtxGetState);
#undef WEFTIO_FIND
}

driver opened()
{
    // Lazy loading of a module would wait for persistent kernels, which never end.
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        throw error(errc::not_found,
                    fmt::format("weftio: cuda: no NVIDIA driver ({}); install it, or use cpu or opencl", dlerror()));
    driver made{};
    find_functions(library, made);
    made.check(made.cuInit(0), "starting the driver");
    return made;
}

} // namespace

std::string driver::words(result failure) const
{
    const char *name = nullptr, *text = nullptr;
    cuGetErrorName(failure, &name);
    cuGetErrorString(failure, &text);
    return fmt::format("{} ({})", name ? name : std::to_string(failure), text ? text : "no text");
}

void driver::check(result status, const char* what) const
{
    if (status == success)
        return;
    constexpr result out_of_memory = 2;
    throw error(
        status == out_of_memory ? errc::out_of_memory : errc::device_error,
        fmt::format("weftio: cuda: {} failed: {}; \"nvidia-smi\" shows the state of the GPU", what, words(status)));
}

const driver& the_driver()
{
    static const driver instance = opened();
    return instance;
}

} // namespace weftio::devices::cuda
