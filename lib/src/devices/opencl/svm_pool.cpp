#include "devices/opencl/svm_pool.hpp"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "weftio/error.hpp"

namespace weftio::devices::opencl {

svm_pool::svm_pool(cl::Context context, const device_facts& facts)
    : context_(std::move(context)), device_(facts.name), max_bytes_(facts.max_bytes)
{}

svm_pool::~svm_pool()
{
    for (const auto& [address, piece] : pieces_)
        clSVMFree(context_(), piece.start);
}

void* svm_pool::allocate(std::size_t bytes, std::size_t alignment)
{
    constexpr cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
    bool fits = alignment <= max_bytes_ && bytes <= max_bytes_ - (alignment - 1);
    void* start = fits ? clSVMAlloc(context_(), flags, bytes + alignment - 1, 0) : nullptr;
    if (!start)
        throw error(errc::out_of_memory, fmt::format("weftio: opencl: device \"{}\" cannot allocate {} bytes of shared "
                                                     "memory aligned to {} (largest allocation: {}); allocate less",
                                                     device_, bytes, alignment, max_bytes_));
    auto first = (reinterpret_cast<std::uintptr_t>(start) + alignment - 1) & ~(alignment - 1);
    auto* address = reinterpret_cast<std::byte*>(first);
    std::memset(address, 0, bytes);

    std::lock_guard lock(mutex_);
    pieces_.emplace(address, piece{start, bytes});
    return address;
}

void svm_pool::release(void* address) noexcept
{
    std::lock_guard lock(mutex_);
    auto found = pieces_.find(static_cast<const std::byte*>(address));
    if (found == pieces_.end())
        return;
    clSVMFree(context_(), found->second.start);
    pieces_.erase(found);
}

bool svm_pool::contains(const void* address) const
{
    auto* wanted = static_cast<const std::byte*>(address);
    std::lock_guard lock(mutex_);
    auto behind = pieces_.upper_bound(wanted);
    if (behind == pieces_.begin())
        return false;
    const auto& [first, piece] = *std::prev(behind);
    return wanted < first + piece.bytes;
}

std::vector<void*> svm_pool::pieces() const
{
    std::lock_guard lock(mutex_);
    std::vector<void*> starts;
    for (const auto& [address, piece] : pieces_)
        starts.push_back(piece.start);
    return starts;
}

} // namespace weftio::devices::opencl
