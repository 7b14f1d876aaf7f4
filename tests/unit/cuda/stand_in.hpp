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
    unsigned long long (*attributes_asked)() = find<unsigned long long()>("stand_in_attributes_asked");
    unsigned (*retained)(int) = find<unsigned(int)>("stand_in_retained");
    void (*lack)(int) = find<void(int)>("stand_in_lack");
    int (*peers)(bool) = find<int(bool)>("stand_in_peers");
    int (*ask)(void*, int, const void*) = find<int(void*, int, const void*)>("cuPointerGetAttribute");
    int (*free_in_order)(std::byte*, void*) = find<int(std::byte*, void*)>("cuMemFreeAsync");
    int (*free_in_order_of_thread)(std::byte*, void*) = find<int(std::byte*, void*)>("cuMemFreeAsync_ptsz");
    int (*close_ipc)(std::byte*) = find<int(std::byte*)>("cuIpcCloseMemHandle");
    int (*make_context)(void**, unsigned, int) = find<int(void**, unsigned, int)>("cuCtxCreate_v2");
    int (*destroy_context)(void*) = find<int(void*)>("cuCtxDestroy_v2");
    int (*destroy_context_1)(void*) = find<int(void*)>("cuCtxDestroy");
    int (*end_context_1)(int) = find<int(int)>("cuDevicePrimaryCtxReset");
    int (*release_context)(int) = find<int(int)>("cuDevicePrimaryCtxRelease_v2");
    int (*unload)(void*) = find<int(void*)>("cuModuleUnload");
    int (*find_by_version)(const char*, void**, int,
                           handle) = find<int(const char*, void**, int, handle)>("cuGetProcAddress");

    /// What cuGetProcAddress() gives. @param flags  2: with a default stream a thread
    template <class Function>
    Function* table(const char* name, int version, handle flags = 0) const
    {
        void* found = nullptr;
        find_by_version(name, &found, version, flags);
        return reinterpret_cast<Function*>(found);
    }
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
