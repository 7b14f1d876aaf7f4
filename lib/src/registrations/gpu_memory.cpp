#include "registrations/gpu_memory.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "devices/cuda/bar1.hpp"
#include "weftio/error.hpp"

namespace weftio::registrations {

namespace {

namespace cuda = devices::cuda;

cuda::cuda_device& cuda_of(const device& gpu)
{
    devices::device_backend& owner = detail::internals::backend(gpu);
    if (owner.cuda_number() < 0)
        throw error(errc::invalid_argument, fmt::format("weftio: registration_cache: add_memory_of: device {} is no "
                                                        "GPU of CUDA; memory of the host needs no call",
                                                        gpu.name()));
    return static_cast<cuda::cuda_device&>(owner);
}

/// Three quarters of the free BAR1. Without NVML, half of all of it; where that is unknown, half of the smallest one.
std::size_t budget_of(const cuda::cuda_device& gpu)
{
    constexpr std::size_t smallest_bar1 = std::size_t{256} << 20;
    const std::string address = gpu.pci_address();
    if (const auto free = cuda::free_bar1_bytes(address))
        return static_cast<std::size_t>(*free / 4 * 3);
    const std::uint64_t all = cuda::bar1_bytes("/sys/bus/pci/devices/" + address);
    return static_cast<std::size_t>(all != 0 ? all : smallest_bar1) / 2;
}

} // namespace

gpu_memory::gpu_memory(const device& gpu, std::size_t budget_bytes)
    : gpu_(gpu), cuda_(cuda_of(gpu)), owner_(detail::internals::block(sample())->owner),
      name_(fmt::format("cuda:{}", cuda_.cuda_number())),
      budget_(budget_bytes != 0 ? budget_bytes : std::max(budget_of(cuda_), grain()))
{}

template <class T>
cuda::result gpu_memory::try_to_ask(T& value, cuda::pointer_attribute attribute, std::uintptr_t address) const noexcept
{
    const cuda::result status = cuda_.api().cuPointerGetAttribute(&value, attribute, address);
    if (status != cuda::invalid_context) [[likely]]
        return status;
    const cuda::current_context now(cuda_.api(), cuda_.primary(), std::nothrow);
    return cuda_.api().cuPointerGetAttribute(&value, attribute, address);
}

/// Returns false if the driver does not know the address.
template <class T>
bool gpu_memory::ask(T& value, cuda::pointer_attribute attribute, std::uintptr_t address) const
{
    constexpr cuda::result invalid_value = 1;
    const cuda::result status = try_to_ask(value, attribute, address);
    if (status != invalid_value)
        cuda_.api().check(status, "asking what memory an address is");
    return status == cuda::success;
}

std::optional<gpu_address> gpu_memory::look_up(std::uintptr_t address) const
{
    gpu_address seen;
    unsigned managed = 0, of_mem_alloc = 1;
    cuda::device_pointer begin = 0;
    std::size_t bytes = 0;
    unsigned long long buffer = 0;
    const std::uint64_t frees = cuda_.frees(); // first, as the ID: what is freed meanwhile is found at the next hit
    if (!ask(buffer, cuda::buffer_id, address) || !ask(seen.type, cuda::memory_type, address) ||
        !ask(managed, cuda::is_managed, address) || !ask(seen.gpu, cuda::device_ordinal, address) ||
        !ask(begin, cuda::range_begin, address) || !ask(bytes, cuda::range_bytes, address))
        return std::nullopt;
    seen.managed = managed != 0;
    seen.allocation = {.bytes = {begin, begin + bytes}, .id = {.buffer = buffer}};
    if (seen.managed || seen.type == cuda::memory_type_host)
        return seen;
    if (try_to_ask(of_mem_alloc, cuda::is_of_mem_alloc, address) == cuda::success && of_mem_alloc == 0 &&
        !see_mapping(seen, address))
        return std::nullopt;
    if (seen.gpu == number() && cuda_.owns(reinterpret_cast<const void*>(begin)))
        seen.allocation.frees = frees;
    return seen;
}

/// The driver's range and buffer ID of such memory are those of reserved addresses. Returns false if nothing is mapped.
bool gpu_memory::see_mapping(gpu_address& seen, std::uintptr_t address) const
{
    unsigned mapped = 0;
    void* pool = nullptr;
    if (!ask(mapped, cuda::is_mapped, address) || mapped == 0)
        return false;
    seen.maker = gpu_maker::unknown;
    if (try_to_ask(pool, cuda::memory_pool, address) == cuda::success && pool) {
        seen.maker = gpu_maker::pool;
    } else if (const std::optional<mapping> there = mapping_at(address)) {
        seen.maker = gpu_maker::mem_map;
        seen.allocation.bytes = there->bytes;
        seen.allocation.id.block = there->block;
    }
    return true;
}

std::optional<gpu_memory::mapping> gpu_memory::mapping_at(std::uintptr_t address) const noexcept
{
    unsigned long long block = 0;
    cuda::device_pointer begin = 0;
    std::size_t bytes = 0;
    if (try_to_ask(block, cuda::memory_block, address) != cuda::success ||
        try_to_ask(begin, cuda::mapping_begin, address) != cuda::success ||
        try_to_ask(bytes, cuda::mapping_bytes, address) != cuda::success || block == 0)
        return std::nullopt;
    return mapping{{begin, begin + bytes}, block};
}

unit gpu_memory::unit_of(const range& bytes) const
{
    const std::optional<gpu_address> first = look_up(bytes.begin);
    if (!first || first->gpu != number())
        throw error(errc::not_reachable, fmt::format("weftio: registration_cache: get: memory at {:#x} was freed "
                                                     "meanwhile",
                                                     bytes.begin));
    if (first->maker == gpu_maker::pool || first->maker == gpu_maker::unknown || first->allocation.id.buffer == 0)
        refuse_maker(*first, bytes.begin);
    if (!first->allocation.bytes.holds(bytes))
        refuse_end(bytes, *first);
    return first->allocation;
}

void gpu_memory::refuse_maker(const gpu_address& seen, std::uintptr_t address) const
{
    if (seen.maker == gpu_maker::pool)
        throw error(
            errc::not_supported,
            fmt::format("weftio: registration_cache: get: memory at {:#x} is of a pool (cudaMallocAsync), which "
                        "gives it to others, and the driver is not known to tell; register it with a "
                        "memory_region",
                        address));
    throw error(errc::not_supported,
                fmt::format("weftio: registration_cache: get: the driver has no ID for the memory at {:#x}, by which "
                            "later memory there is told from it; register it with a memory_region",
                            address));
}

void gpu_memory::refuse_end(const range& bytes, const gpu_address& first) const
{
    const std::uintptr_t end = first.allocation.bytes.end;
    const std::string what = fmt::format("weftio: registration_cache: get: {} bytes at {:#x} exceed the allocation of "
                                         "{}, which ends at {:#x}",
                                         bytes.bytes(), bytes.begin, name_, end);
    const std::optional<gpu_address> next = look_up(end);
    if (!next)
        throw error(errc::invalid_argument, what + ": what follows is free");
    if (next->gpu != first.gpu)
        throw error(errc::invalid_argument,
                    fmt::format("{}: what follows is memory of cuda:{}; ask for each by itself", what, next->gpu));
    throw error(errc::invalid_argument, what + ": what follows is another allocation; ask for each by itself");
}

void gpu_memory::prepare(const unit& allocation) const
{
    (void)gpu_.adopt(reinterpret_cast<void*>(allocation.bytes.begin), allocation.bytes.bytes());
}

/// Asks the driver nothing, because the caller has a lock that a free may wait for.
memory gpu_memory::adopt(const range& bytes, const std::shared_ptr<draining>& drains) const
{
    auto block = std::make_shared<devices::memory_block>(owner_);
    block->adopted = true;
    block->at.device = reinterpret_cast<void*>(bytes.begin);
    block->bytes = bytes.bytes();
    block->kind = memory_kind::device;
    block->unfinished = std::shared_ptr<devices::unfinished_copies>(drains, &drains->copies);
    return detail::internals::make_memory(std::move(block));
}

bool gpu_memory::is_current(node& pages) const noexcept
{
    const std::uint64_t known = pages.frees.load(std::memory_order_relaxed), frees = cuda_.frees();
    if (known == frees)
        return true;
    if (pages.id.block != 0)
        return mapping_at(pages.bytes.begin) == mapping{pages.bytes, pages.id.block};
    unsigned long long buffer = 0;
    if (try_to_ask(buffer, cuda::buffer_id, pages.bytes.begin) != cuda::success || buffer != pages.id.buffer)
        return false;
    if (known != node::allocated_by_others)
        pages.frees.store(frees, std::memory_order_relaxed);
    return true;
}

} // namespace weftio::registrations
