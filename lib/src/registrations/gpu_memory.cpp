#include "registrations/gpu_memory.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "devices/cuda/bar1.hpp"
#include "devices/cuda/free_watch.hpp"
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

gpu_memory::gpu_memory(const device& gpu, std::size_t budget_bytes, bool sees_frees)
    : gpu_(gpu), cuda_(cuda_of(gpu)), owner_(detail::internals::block(sample())->owner),
      name_(fmt::format("cuda:{}", cuda_.cuda_number())),
      budget_(budget_bytes != 0 ? budget_bytes : std::max(budget_of(cuda_), grain())), sees_frees_(sees_frees)
{}

unit gpu_memory::unit_of(const range& bytes) const
{
    const std::uint64_t frees = begin_of_question(); // first: what is freed meanwhile is found at the next hit
    const std::optional<cuda::address_info> first = look_up(bytes.begin);
    if (!first || first->gpu != number())
        throw error(errc::not_reachable, fmt::format("weftio: registration_cache: get: memory at {:#x} was freed "
                                                     "meanwhile",
                                                     bytes.begin));
    if (first->made_by == cuda::maker::pool || first->made_by == cuda::maker::unknown || first->buffer == 0)
        refuse_maker(*first, bytes.begin);
    unit found{.bytes = {first->begin, first->begin + first->bytes},
               .id = {.buffer = first->buffer, .block = first->block}};
    if (!found.bytes.holds(bytes))
        refuse_end(bytes, *first);
    void* context = nullptr;
    if (sees_frees_ && cuda::ask(cuda_, context, cuda::pointer_context, bytes.begin) == cuda::success)
        found.context = reinterpret_cast<std::uintptr_t>(context);
    if (sees_frees_ || cuda_.owns(reinterpret_cast<const void*>(first->begin)))
        found.frees = frees;
    return found;
}

/// Read before the driver is asked what the memory is: an answer is as good as this. Where frees are seen, it is how
/// many have begun, of which none may be under way.
std::uint64_t gpu_memory::begin_of_question() const noexcept
{
    return sees_frees_ ? cuda::free_watch::instance().quiet().value_or(node::allocated_by_others) : cuda_.frees();
}

/// A free that begins from now on finds the node, as it has been told of those before.
std::uint64_t gpu_memory::frees_once_found(std::uint64_t then) const noexcept
{
    if (!sees_frees_)
        return then;
    const cuda::free_watch& watch = cuda::free_watch::instance();
    const std::uint64_t unseen = watch.unseen();
    return watch.is_still(then) ? unseen : node::allocated_by_others;
}

std::uint64_t gpu_memory::unseen_frees() const noexcept
{
    return sees_frees_ ? cuda::free_watch::instance().unseen() : cuda_.frees();
}

void gpu_memory::refuse_maker(const cuda::address_info& seen, std::uintptr_t address) const
{
    if (seen.made_by == cuda::maker::pool)
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

void gpu_memory::refuse_end(const range& bytes, const cuda::address_info& first) const
{
    const std::uintptr_t end = first.begin + first.bytes;
    const std::string what = fmt::format("weftio: registration_cache: get: {} bytes at {:#x} exceed the allocation of "
                                         "{}, which ends at {:#x}",
                                         bytes.bytes(), bytes.begin, name_, end);
    const std::optional<cuda::address_info> next = look_up(end);
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
    const std::uint64_t known = pages.frees.load(std::memory_order_relaxed);
    if (known == unseen_frees()) [[likely]]
        return true;
    const std::uint64_t begin = begin_of_question();
    if (!is_same(pages))
        return false;
    if (sees_frees_)
        pages.frees.store(frees_once_found(begin), std::memory_order_relaxed);
    else if (known != node::allocated_by_others)
        pages.frees.store(begin, std::memory_order_relaxed);
    return true;
}

bool gpu_memory::is_same(const node& pages) const noexcept
{
    if (pages.id.block != 0)
        return cuda::mapping_at(cuda_, pages.bytes.begin) ==
               cuda::mapping{pages.bytes.begin, pages.bytes.bytes(), pages.id.block};
    unsigned long long buffer = 0;
    return cuda::ask(cuda_, buffer, cuda::buffer_id, pages.bytes.begin) == cuda::success && buffer == pages.id.buffer;
}

} // namespace weftio::registrations
