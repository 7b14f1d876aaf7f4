#include "registrations/gpu_caches.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "weftio/error.hpp"
#include "weftio/memory.hpp"

namespace weftio::registrations {

namespace {

/// Has the NIC make what it needs for memory of the GPU, which may wait for the GPU: get() does not.
void introduce(const gpu_memory& memory, const registrar& nic)
{
    memory_region any(memory.sample());
    nic(any);
}

} // namespace

gpu_caches::~gpu_caches()
{
    for (gpu& each : all_) {
        each.hears.reset();
        each.registered->close();
    }
}

void gpu_caches::add(const device& gpu, std::size_t budget_bytes, const registration_cache_options& options,
                     const std::vector<registrar>& nics)
{
    all_.reserve(all_.size() + 1);
    const bool sees_frees = options.staleness_of_gpus == gpu_staleness::seen_frees;
    auto memory = std::make_unique<const gpu_memory>(gpu, budget_bytes, sees_frees);
    const gpu_memory& seen = *memory;
    if (std::ranges::any_of(all_, [&](const auto& each) { return each.memory->number() == seen.number(); }))
        throw error(errc::invalid_argument, fmt::format("weftio: registration_cache: add_memory_of: the cache has "
                                                        "memory of {} already",
                                                        seen.name()));
    auto made = std::make_unique<cache>(options, std::move(memory));
    for (const registrar& nic : nics) {
        introduce(seen, nic);
        made->register_with(nic);
    }
    auto hears = sees_frees ? std::make_unique<free_hearing>(seen, *made) : nullptr;
    all_.push_back({&seen, made.release(), std::move(hears)});
}

void gpu_caches::register_with(const registrar& nic)
{
    for (const gpu& each : all_) {
        introduce(*each.memory, nic);
        each.registered->register_with(nic);
    }
}

node* gpu_caches::hit(const gpu& at, const range& bytes, access rights)
{
    node* const found = at.registered->find(bytes, rights);
    if (!found)
        return nullptr;
    node& pages = found->pages ? *found->pages : *found;
    if (at.memory->is_current(pages)) [[likely]] {
        at.registered->count_hit();
        return found;
    }
    const range gone = pages.bytes;
    const memory_id id = pages.id;
    found->give_back();
    at.registered->revoke(gone, id);
    return nullptr;
}

node& gpu_caches::get(const range& bytes, access rights, cache& host)
{
    for (const gpu& each : all_)
        if (node* const found = hit(each, bytes, rights))
            return *found;
    if (node* const found = host.hit(bytes, rights))
        return *found;
    if (node* const made = register_at_gpu(bytes, rights))
        return *made;
    try {
        return host.miss(bytes, rights);
    } catch (const error& refused) {
        if (refused.code() != errc::not_reachable)
            throw;
        throw error(errc::not_reachable,
                    fmt::format("weftio: registration_cache: get: {} bytes at {:#x} are no memory of a GPU (it was "
                                "freed, or its context has ended), and none of the host that can be used so: {}",
                                bytes.bytes(), bytes.begin, refused.what()));
    }
}

/// Returns nullptr for memory of the host: also for what the driver has pinned of it.
node* gpu_caches::register_at_gpu(const range& bytes, access rights)
{
    const std::optional<devices::cuda::address_info> known = all_.front().memory->look_up(bytes.begin);
    if (!known)
        return nullptr;
    if (known->managed)
        throw error(errc::not_supported,
                    fmt::format("weftio: registration_cache: get: memory at {:#x} is managed: its pages may migrate "
                                "while a NIC accesses them; allocate it with cudaMalloc or cudaMallocHost",
                                bytes.begin));
    if (known->is_of_host())
        return nullptr;
    const auto owner = std::ranges::find_if(all_, [&](const gpu& each) { return each.memory->number() == known->gpu; });
    if (owner == all_.end())
        throw error(errc::not_reachable,
                    fmt::format("weftio: registration_cache: get: memory at {:#x} is that of cuda:{}, which the cache "
                                "does not know; call add_memory_of() for it",
                                bytes.begin, known->gpu));
    for (const gpu& each : all_)
        if (each.registered != owner->registered) // the address was another GPU's before
            each.registered->revoke({known->begin, known->begin + known->bytes});
    return &owner->registered->miss(bytes, rights);
}

void gpu_caches::invalidate(const range& bytes)
{
    for (const gpu& each : all_)
        each.registered->invalidate(bytes);
}

std::size_t gpu_caches::revoke(const range& bytes)
{
    std::size_t keys = 0;
    for (const gpu& each : all_)
        keys += each.registered->revoke(bytes);
    return keys;
}

bool gpu_caches::drained(const range& bytes) noexcept
{
    return std::ranges::all_of(all_, [&](const gpu& each) { return each.registered->drained(bytes); });
}

void gpu_caches::add_to(registration_cache_counters& sum) const noexcept
{
    for (const gpu& each : all_) {
        const registration_cache_counters more = each.registered->counters();
        sum.hits += more.hits;
        sum.misses += more.misses;
        sum.remote_keys += more.remote_keys;
        sum.evictions += more.evictions;
        sum.invalidations += more.invalidations;
        sum.revocations += more.revocations;
        sum.bytes += more.bytes;
        sum.registrations += more.registrations;
    }
}

} // namespace weftio::registrations
