#include "storage/memories.hpp"

#include <dlfcn.h>
#include <link.h>

#include <array>
#include <mutex>

#include "core/undying.hpp"
#include "devices/cuda/driver.hpp"

namespace weftio::storage {

namespace {

namespace cuda = devices::cuda;

/// The driver, once it was found.
std::atomic<const cuda::driver*> found_driver{nullptr};

/// How many libraries the process has loaded so far. Costs some 50 ns, where dlopen() looks at files.
unsigned long long loaded_libraries() noexcept
{
    unsigned long long count = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            *static_cast<unsigned long long*>(to) = info->dlpi_adds;
            return 1;
        },
        &count);
    return count;
}

/// As of the last look for the driver.
std::atomic<unsigned long long> scanned_libraries{0};

/// GPUs by their number, opened when memory of theirs is first met.
struct gpus {
    std::mutex mutex;
    std::map<int, std::shared_ptr<devices::device_backend>> opened;
};

std::shared_ptr<devices::device_backend> gpu(int number)
{
    gpus& all = core::undying<gpus>();
    const std::lock_guard lock(all.mutex);
    auto& known = all.opened[number];
    if (!known)
        known = devices::open_cuda("cuda:" + std::to_string(number), number);
    return known;
}

place of_host(std::byte* address, file_fall fall = file_fall::none)
{
    return {.cpu = address, .bytes = ~std::size_t{0}, .fall = fall};
}

} // namespace

bool memories::enter(const place& at, std::size_t bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(at.device ? at.device : at.cpu);
    const std::lock_guard lock(mutex_);
    const auto behind = registered_.lower_bound(first);
    if (behind != registered_.end() && behind->first - first < bytes)
        return false;
    if (behind != registered_.begin() && first - std::prev(behind)->first < std::prev(behind)->second.bytes)
        return false;
    registered_.emplace_hint(behind, first, registered{bytes, at});
    count_.store(registered_.size(), std::memory_order_release);
    return true;
}

void memories::leave(const place& at) noexcept
{
    const std::lock_guard lock(mutex_);
    registered_.erase(reinterpret_cast<std::uintptr_t>(at.device ? at.device : at.cpu));
    count_.store(registered_.size(), std::memory_order_release);
}

place memories::find(std::byte* address) const
{
    if (count_.load(std::memory_order_acquire) != 0) {
        const auto first = reinterpret_cast<std::uintptr_t>(address);
        const std::shared_lock lock(mutex_);
        if (const auto* found = holder(first)) {
            const std::size_t offset = first - found->first;
            place made = found->second.at;
            (made.device ? made.device : made.cpu) += offset;
            made.bytes = found->second.bytes - offset;
            return made;
        }
    }
    return find_by_cuda(address);
}

std::byte* memories::base_of(const std::byte* address) const
{
    if (count_.load(std::memory_order_acquire) == 0)
        return nullptr;
    const std::shared_lock lock(mutex_);
    const auto* found = holder(reinterpret_cast<std::uintptr_t>(address));
    return !found ? nullptr : found->second.at.device ? found->second.at.device : found->second.at.cpu;
}

std::uint64_t memories::registered_at(const std::byte* address) const noexcept
{
    if (count_.load(std::memory_order_acquire) == 0)
        return 0;
    const std::shared_lock lock(mutex_);
    const auto* found = holder(reinterpret_cast<std::uintptr_t>(address));
    return found ? found->second.at.registered : 0;
}

const std::pair<const std::uintptr_t, memories::registered>* memories::holder(std::uintptr_t address) const noexcept
{
    auto behind = registered_.upper_bound(address);
    if (behind == registered_.begin())
        return nullptr;
    const auto& last = *--behind;
    return address - last.first < last.second.bytes ? &last : nullptr;
}

bool find_cuda_driver() noexcept
try {
    if (found_driver.load(std::memory_order_acquire))
        return false;
    const unsigned long long libraries = loaded_libraries();
    if (scanned_libraries.load(std::memory_order_relaxed) == libraries)
        return false;
    scanned_libraries.store(libraries, std::memory_order_relaxed);
    void* loaded = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!loaded)
        return false;
    found_driver.store(&cuda::the_driver(), std::memory_order_release);
    return true;
} catch (const std::exception&) { // it does not start: no memory is its
    return false;
}

const devices::cuda::driver* cuda_driver() noexcept
{
    return found_driver.load(std::memory_order_acquire);
}

place find_by_cuda(std::byte* address)
{
    const cuda::driver* driver = cuda_driver();
    if (!driver)
        return of_host(address);
    const auto ask = [&](auto& value, int attribute) {
        return driver->cuPointerGetAttribute(&value, attribute, reinterpret_cast<std::uintptr_t>(address)) ==
               cuda::success;
    };
    unsigned type = 0, managed = 0;
    int number = 0;
    cuda::device_pointer begin = 0;
    std::size_t bytes = 0;
    if (!ask(type, cuda::memory_type))
        return of_host(address);
    if (ask(managed, cuda::is_managed) && managed != 0)
        return of_host(address, file_fall::managed_memory);
    if (type == cuda::memory_type_host || !ask(number, cuda::device_ordinal) || !ask(begin, cuda::range_begin) ||
        !ask(bytes, cuda::range_bytes))
        return of_host(address);
    return {
        .device = address, .bytes = begin + bytes - reinterpret_cast<std::uintptr_t>(address), .owner = gpu(number)};
}

} // namespace weftio::storage
