#include "gpu.hpp"

#include <vector>

#include "dev.hpp"
#include "log.hpp"

namespace weftio::doca {

void require_memory_type(doca_gpu_mem_type type)
{
    require(
        type >= DOCA_GPU_MEM_TYPE_GPU && type <= DOCA_GPU_MEM_TYPE_CPU_GPU, DOCA_ERROR_INVALID_VALUE,
        "{} is no type of memory; use DOCA_GPU_MEM_TYPE_GPU, DOCA_GPU_MEM_TYPE_GPU_CPU or DOCA_GPU_MEM_TYPE_CPU_GPU",
        static_cast<int>(type));
}

namespace {

/// GPUs that were destroyed before their memory, which stays until it is freed. Never destroyed.
struct destroyed_gpus {
    std::mutex mutex;
    std::vector<std::shared_ptr<doca_gpu>> all;
};
destroyed_gpus& destroyed()
{
    static auto* one = new destroyed_gpus;
    return *one;
}

std::shared_ptr<doca_gpu> living_or_destroyed(const doca_gpu* gpu)
{
    std::lock_guard lock(destroyed().mutex);
    for (const auto& one : destroyed().all)
        if (one.get() == gpu)
            return one;
    return known(gpu);
}

void tell_where_memory_lies()
{
    static std::once_flag told;
    std::call_once(told, [] {
        log_info("memory of doca_gpu_mem_alloc is pinned memory of the host that the GPU maps, also of type "
                 "DOCA_GPU_MEM_TYPE_GPU, because a software NIC reads and writes it");
    });
}

} // namespace
} // namespace weftio::doca

using namespace weftio::doca;

const weftio::memory& doca_gpu::allocate(std::size_t bytes, std::size_t alignment)
{
    tell_where_memory_lies();
    auto block = std::make_shared<const weftio::memory>(
        device.allocate(bytes, weftio::memory_kind::cpu_device, alignment ? alignment : 4096));
    const auto address = reinterpret_cast<std::uintptr_t>(block->device_address());
    std::lock_guard lock(mutex_);
    return *(blocks_[address] = std::move(block));
}

void doca_gpu::free(const void* address)
{
    std::shared_ptr<const weftio::memory> last; // freed without the lock
    std::lock_guard lock(mutex_);
    auto found = blocks_.find(reinterpret_cast<std::uintptr_t>(address));
    require(found != blocks_.end(), DOCA_ERROR_INVALID_VALUE,
            "{} is no address that doca_gpu_mem_alloc has returned for this GPU, or is free already",
            fmt::ptr(address));
    last = std::move(found->second);
    blocks_.erase(found);
}

std::size_t doca_gpu::allocations()
{
    std::lock_guard lock(mutex_);
    return blocks_.size();
}

std::optional<memory_part> doca_gpu::find(const void* address, std::size_t bytes)
{
    const auto first = reinterpret_cast<std::uintptr_t>(address);
    std::lock_guard lock(mutex_);
    for (const auto& [begin, block] : blocks_)
        for (const void* base : {block->device_address(), block->cpu_address()}) {
            const auto offset = first - reinterpret_cast<std::uintptr_t>(base);
            if (offset < block->bytes() && bytes <= block->bytes() - offset)
                return memory_part{block, offset};
        }
    return {};
}

doca_error_t doca_gpu_create(const char* gpu_bus_id, doca_gpu** gpu)
{
    return call(__func__, [&] {
        require(gpu_bus_id, DOCA_ERROR_INVALID_VALUE, "the PCI address is a null pointer");
        result(gpu, "gpu");
        const std::string pci = whole_pci_address(gpu_bus_id);
        note_use();
        make(gpu, weftio::device::open(pci.empty() ? gpu_bus_id : pci));
    });
}

doca_error_t doca_gpu_destroy(doca_gpu* gpu)
{
    return call(__func__, [&] {
        auto ended = living<doca_gpu>::remove(gpu);
        if (const auto left = ended->allocations()) {
            log_warning(fmt::format("doca_gpu_destroy: {} allocations stay until doca_gpu_mem_free", left));
            std::lock_guard lock(destroyed().mutex);
            destroyed().all.push_back(std::move(ended));
        }
    });
}

doca_error_t doca_gpu_mem_alloc(doca_gpu* gpu, std::size_t bytes, std::size_t alignment, doca_gpu_mem_type type,
                                void** gpu_memory, void** cpu_memory)
{
    return call(__func__, [&] {
        auto owner = known(gpu);
        auto& for_gpu = result(gpu_memory, "gpu_memory");
        require_memory_type(type);
        require(cpu_memory || type == DOCA_GPU_MEM_TYPE_GPU, DOCA_ERROR_INVALID_VALUE,
                "\"cpu_memory\", where the CPU's address goes, is a null pointer");
        require(bytes, DOCA_ERROR_INVALID_VALUE, "there are 0 bytes to allocate");
        const auto& memory = owner->allocate(bytes, alignment);
        for_gpu = memory.device_address();
        if (cpu_memory)
            *cpu_memory = type == DOCA_GPU_MEM_TYPE_GPU ? nullptr : memory.cpu_address();
    });
}

doca_error_t doca_gpu_mem_free(doca_gpu* gpu, void* gpu_memory)
{
    return call(__func__, [&] {
        const auto owner = living_or_destroyed(gpu);
        owner->free(gpu_memory);
        std::lock_guard lock(destroyed().mutex);
        if (!owner->allocations())
            std::erase(destroyed().all, owner);
    });
}

doca_error_t doca_gpu_dmabuf_fd(doca_gpu* gpu, void* gpu_memory, std::size_t bytes, int* dmabuf_fd)
{
    const doca_error_t checked = call(__func__, [&] {
        require(known(gpu)->find(gpu_memory, bytes).has_value(), DOCA_ERROR_INVALID_VALUE,
                "{} bytes at {} are not memory of doca_gpu_mem_alloc", bytes, fmt::ptr(gpu_memory));
        result(dmabuf_fd, "dmabuf_fd");
        log_info("doca_gpu_dmabuf_fd: pinned memory of the host is no dma-buf; the program maps it by its address");
    });
    return checked == DOCA_SUCCESS ? DOCA_ERROR_NOT_SUPPORTED : checked; // what programs expect of many GPUs
}
