#include "gpus.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "core/undying.hpp"
#include "devices/cuda/driver.hpp"

namespace weftio::verbs {

namespace {

namespace cuda = devices::cuda;
using get_attribute = cuda::result(void*, int, cuda::device_pointer);

/// The driver is the program's own, which this library is never linked to. nullptr: it has not loaded it so far.
get_attribute* program_driver() noexcept
{
    void* const loaded = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (loaded == nullptr)
        return nullptr;
    auto* const found = reinterpret_cast<get_attribute*>(dlsym(loaded, "cuPointerGetAttribute"));
    dlclose(loaded); // the program keeps it
    return found;
}

/// GPUs by their number. Never closed: engines use them until the process ends.
struct open_gpus {
    std::mutex mutex;
    std::map<int, device> opened;
};

device gpu(int number)
{
    open_gpus& all = core::undying<open_gpus>();
    const std::scoped_lock lock(all.mutex);
    const auto known = all.opened.find(number);
    return known != all.opened.end()
               ? known->second
               : all.opened.emplace(number, device::open(fmt::format("cuda:{}", number))).first->second;
}

} // namespace

std::optional<memory> adopt_gpu_memory(void* address, std::size_t bytes)
{
    get_attribute* const ask = program_driver();
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    unsigned type = cuda::memory_type_host, managed = 0;
    int number = 0;
    if (ask == nullptr || ask(&type, cuda::memory_type, at) != cuda::success || type == cuda::memory_type_host ||
        (ask(&managed, cuda::is_managed, at) == cuda::success && managed != 0) ||
        ask(&number, cuda::device_ordinal, at) != cuda::success)
        return std::nullopt;
    return gpu(number).adopt(address, bytes);
}

} // namespace weftio::verbs
