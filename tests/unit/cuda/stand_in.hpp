// What stands in for NVIDIA's driver and its management library.
#pragma once

#include <dlfcn.h>

#include <cstddef>

namespace weftio::test {

/// The stand-in by its full path; its name is that of the driver, so that it is what Weftio opens by that name.
struct stand_in {
    void* const opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)
                             ? nullptr // the driver of this machine was loaded before
                             : dlopen(WEFTIO_CUDA_STAND_IN, RTLD_NOW | RTLD_LOCAL);
    void* const management = opened ? dlopen(WEFTIO_MANAGEMENT_STAND_IN, RTLD_NOW | RTLD_LOCAL) : nullptr;
    int (*retain)(void**, int) = find<int(void**, int)>("cuDevicePrimaryCtxRetain");
    int (*end_context)(int) = find<int(int)>("cuDevicePrimaryCtxReset_v2");
    int (*get_current)(void**) = find<int(void**)>("cuCtxGetCurrent");
    int (*set_current)(void*) = find<int(void*)>("cuCtxSetCurrent");
    int (*allocate)(std::byte**, std::size_t) = find<int(std::byte**, std::size_t)>("cuMemAlloc_v2");
    int (*allocate_managed)(std::byte**, std::size_t,
                            unsigned) = find<int(std::byte**, std::size_t, unsigned)>("cuMemAllocManaged");
    int (*release)(std::byte*) = find<int(std::byte*)>("cuMemFree_v2");
    int (*allocate_of_pool)(std::byte**, std::size_t,
                            void*) = find<int(std::byte**, std::size_t, void*)>("cuMemAllocAsync");
    using handle = unsigned long long;
    int (*reserve)(std::byte**, std::size_t, std::size_t, void*,
                   handle) = find<int(std::byte**, std::size_t, std::size_t, void*, handle)>("cuMemAddressReserve");
    int (*end_reservation)(std::byte*, std::size_t) = find<int(std::byte*, std::size_t)>("cuMemAddressFree");
    int (*create)(handle*, std::size_t, const void*,
                  handle) = find<int(handle*, std::size_t, const void*, handle)>("cuMemCreate");
    int (*map)(std::byte*, std::size_t, std::size_t, handle,
               handle) = find<int(std::byte*, std::size_t, std::size_t, handle, handle)>("cuMemMap");
    int (*unmap)(std::byte*, std::size_t) = find<int(std::byte*, std::size_t)>("cuMemUnmap");
    int (*allow)(std::byte*, std::size_t, const void*,
                 std::size_t) = find<int(std::byte*, std::size_t, const void*, std::size_t)>("cuMemSetAccess");
    void (*begin_anew)() = find<void()>("stand_in_begin_anew");
    void (*hold)(bool) = find<void(bool)>("stand_in_hold");
    std::size_t (*held)() = find<std::size_t()>("stand_in_held");
    unsigned long long (*ids_asked)() = find<unsigned long long()>("stand_in_ids_asked");
    int (*peers)(bool) = find<int(bool)>("stand_in_peers");

    template <class Function>
    Function* find(const char* name) const
    {
        return opened ? reinterpret_cast<Function*>(dlsym(opened, name)) : nullptr;
    }
};

inline const stand_in& driver()
{
    static const stand_in only;
    return only;
}

} // namespace weftio::test
