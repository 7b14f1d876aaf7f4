#include "static_runtime.hpp"

#include <dlfcn.h>

namespace static_runtime {

namespace {

using pointer = unsigned long long;

struct functions {
    int (*free)(pointer) = nullptr;
    int (*free_in_order)(pointer, void*) = nullptr;
    int (*unmap)(pointer, std::size_t) = nullptr;
    int (*reset)(int) = nullptr;
};
functions found;

pointer number(void* memory)
{
    return reinterpret_cast<pointer>(memory);
}

} // namespace

bool start()
{
    if (found.free)
        return true;
    using get = int(const char*, void**, int, unsigned long long, int*);
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    auto* const find = driver ? reinterpret_cast<get*>(dlsym(driver, "cuGetProcAddress_v2")) : nullptr;
    constexpr unsigned long long one_a_thread = 2;
    return find &&
           find("cuMemFreeAsync", reinterpret_cast<void**>(&found.free_in_order), 11020, one_a_thread, nullptr) == 0 &&
           find("cuMemUnmap", reinterpret_cast<void**>(&found.unmap), 10020, one_a_thread, nullptr) == 0 &&
           find("cuDevicePrimaryCtxReset", reinterpret_cast<void**>(&found.reset), 11000, one_a_thread, nullptr) == 0 &&
           find("cuMemFree", reinterpret_cast<void**>(&found.free), 3020, one_a_thread, nullptr) == 0;
}

int free(void* memory)
{
    return found.free(number(memory));
}

int free_in_order(void* memory)
{
    return found.free_in_order(number(memory), nullptr);
}

int unmap(void* at, std::size_t bytes)
{
    return found.unmap(number(at), bytes);
}

int reset_device(int device)
{
    return found.reset(device);
}

} // namespace static_runtime
