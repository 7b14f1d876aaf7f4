// What ends memory of the stand-in's GPUs, and how programs get the functions that do.
#include <string_view>

#include "cuda_state.hpp"

using namespace stand_in;

extern "C" {

/// For tests: how often the primary context is retained now.
unsigned stand_in_retained(int device)
{
    const std::lock_guard lock(mutex);
    return gpus[device].retained;
}
int cuMemFree_v2(device_pointer memory)
{
    return release(reinterpret_cast<void*>(memory));
}
int cuMemFreeAsync(device_pointer memory, stream* in)
{
    if (status_of(in) == success)
        do_in_order([=] { give_back(reinterpret_cast<void*>(memory)); });
    return status_of(in);
}
/// Its default stream is one of the thread.
int cuMemFreeAsync_ptsz(device_pointer memory, stream* in)
{
    const int status = status_of(in);
    if (status == success)
        do_in_order([memory] { give_back(reinterpret_cast<void*>(memory)); });
    return status;
}
int cuIpcCloseMemHandle(device_pointer memory)
{
    return give_back(reinterpret_cast<void*>(memory));
}
int cuCtxCreate_v2(gpu** made, unsigned flags, int device)
{
    *made = new gpu{.number = device, .flags = flags};
    contexts().push_back(*made);
    return success;
}
int cuCtxDestroy_v2(gpu* ended)
{
    end_context(ended);
    std::erase(contexts(), ended);
    delete ended;
    return success;
}
int cuCtxDestroy(gpu* ended)
{
    end_context(ended);
    std::erase(contexts(), ended);
    delete ended;
    return success;
}
int cuDevicePrimaryCtxRetain(gpu** context, int device)
{
    const std::lock_guard lock(mutex);
    *context = &gpus[device];
    ++gpus[device].retained;
    return success;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active)
{
    const std::lock_guard lock(mutex);
    *flags = gpus[device].flags;
    *active = gpus[device].retained != 0;
    return success;
}
int cuDevicePrimaryCtxRelease_v2(int device)
{
    {
        const std::lock_guard lock(mutex);
        if (gpus[device].retained == 0)
            return invalid_context;
        if (--gpus[device].retained != 0)
            return success;
    }
    end_context(&gpus[device]);
    return success;
}
int cuDevicePrimaryCtxReset_v2(int device)
{
    end_context(&gpus[device]);
    return success;
}
int cuDevicePrimaryCtxReset(int device)
{
    const gpu* const of = &gpus[device];
    end_context(of);
    return success;
}
int cuModuleUnload(void*)
{
    return current() ? success : invalid_context;
}
int cuMemUnmap(device_pointer at, std::size_t bytes)
{
    const std::lock_guard lock(mutex);
    const auto found = mappings.find(at);
    if (found == mappings.end() || found->second.bytes != bytes)
        return invalid_value;
    of_gpus().uncover(reinterpret_cast<std::byte*>(at), bytes);
    mappings.erase(found);
    return success;
}

} // extern "C"

namespace {

/// What drivers have in their tables need not be the function that dlsym() finds.
int free_of_table(device_pointer memory)
{
    return current() ? give_back(reinterpret_cast<void*>(memory)) : invalid_context;
}

struct known_function {
    std::string_view name;
    int since; ///< version of CUDA
    void* address;
    void* of_thread; ///< with a default stream a thread; nullptr: it has none
};

template <class Function>
void* address_of(Function* function)
{
    return reinterpret_cast<void*>(function);
}

const known_function known[] = {
    {"cuMemFree", 3020, address_of(free_of_table), nullptr},
    {"cuMemFreeAsync", 11020, address_of(cuMemFreeAsync), address_of(cuMemFreeAsync_ptsz)},
    {"cuMemUnmap", 10020, address_of(cuMemUnmap), nullptr},
    {"cuIpcCloseMemHandle", 4010, address_of(cuIpcCloseMemHandle), nullptr},
    {"cuCtxDestroy", 4000, address_of(cuCtxDestroy_v2), nullptr},
    {"cuCtxDestroy", 2000, address_of(cuCtxDestroy), nullptr},
    {"cuDevicePrimaryCtxReset", 11000, address_of(cuDevicePrimaryCtxReset_v2), nullptr},
    {"cuDevicePrimaryCtxReset", 7000, address_of(cuDevicePrimaryCtxReset), nullptr},
    {"cuDevicePrimaryCtxRelease", 11000, address_of(cuDevicePrimaryCtxRelease_v2), nullptr},
    {"cuModuleUnload", 2000, address_of(cuModuleUnload), nullptr},
};

} // namespace

extern "C" {

/// @param version  of CUDA: the newest function that is not newer
int cuGetProcAddress_v2(const char* name, void** found, int version, unsigned long long flags, int* status)
{
    constexpr unsigned long long one_a_thread = 2;
    for (const known_function& each : known)
        if (each.name == name && each.since <= version) {
            *found = (flags & one_a_thread) && each.of_thread ? each.of_thread : each.address;
            if (status)
                *status = 0;
            return success;
        }
    *found = nullptr;
    return not_found;
}
int cuGetProcAddress(const char* name, void** found, int version, unsigned long long flags)
{
    return cuGetProcAddress_v2(name, found, version, flags, nullptr);
}

} // extern "C"
