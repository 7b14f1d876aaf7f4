#include "weftio/registration_cache.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "registrations/gpu_caches.hpp"
#include "weftio/dma.hpp"
#include "weftio/error.hpp"
#include "weftio/file.hpp"

namespace weftio {

namespace {

/// Room behind the last byte for the end of its page.
constexpr std::uintptr_t last_end = std::numeric_limits<std::uintptr_t>::max() >> 1;

registrations::range checked(const void* address, std::size_t bytes)
{
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    if (!address || bytes == 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: registration_cache: get: {} bytes at {}; the address must be non-null and the "
                                "size > 0",
                                bytes, address));
    if (begin > last_end || bytes > last_end - begin)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: registration_cache: get: {} bytes at {} exceed the address space; use a "
                                "smaller size",
                                bytes, address));
    return {begin, begin + bytes};
}

registrations::range clamped(const void* address, std::size_t bytes)
{
    const auto begin = reinterpret_cast<std::uintptr_t>(address);
    const std::uintptr_t most = std::numeric_limits<std::uintptr_t>::max() - begin;
    return {begin, begin + std::min<std::uintptr_t>(bytes, most)};
}

template <class Nic>
std::uint32_t key_of(registrations::node* node, bool remote, const Nic& nic)
{
    if (!node || (remote && node->rkey == 0))
        throw error(errc::invalid_argument,
                    node ? "weftio: registration: it has no remote key; ask get() for a right of peers"
                         : "weftio: registration: the handle is empty and has no key; get() returns others");
    return (remote || !node->pages ? node : node->pages)->region->lkey(nic);
}

} // namespace

std::uint32_t registration::lkey() const noexcept
{
    return node_ ? node_->lkey : 0;
}

std::uint32_t registration::rkey() const noexcept
{
    return node_ ? node_->rkey : 0;
}

std::uint32_t registration::key_at(bool remote, const port& port) const
{
    return key_of(node_, remote, port);
}

std::uint32_t registration::key_at(bool remote, const dma_engine& engine) const
{
    return key_of(node_, remote, engine);
}

std::uint32_t registration::key_at(bool remote, const file_engine& engine) const
{
    return key_of(node_, remote, engine);
}

void registration::give_back(registrations::node& node) noexcept
{
    node.give_back();
}

registration_cache::registration_cache(registration_cache_options options) : cache_(new registrations::cache(options))
{}

registration_cache::registration_cache(const port& port, registration_cache_options options)
    : registration_cache(options)
{
    register_with(port);
}

registration_cache::registration_cache(registration_cache&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)), gpus_(std::move(other.gpus_))
{}

registration_cache& registration_cache::operator=(registration_cache&& other) noexcept
{
    const registration_cache old(std::move(*this));
    cache_ = std::exchange(other.cache_, nullptr);
    gpus_ = std::move(other.gpus_);
    return *this;
}

registration_cache::~registration_cache()
{
    if (cache_)
        cache_->close();
}

template <class Nic>
void registration_cache::register_with_any(const Nic& nic)
{
    const registrations::registrar registers = [nic](memory_region& region) { region.register_with(nic); };
    if (gpus_)
        gpus_->register_with(registers);
    cache_->register_with(registers);
}

void registration_cache::register_with(const port& port)
{
    register_with_any(port);
}

void registration_cache::register_with(const dma_engine& engine)
{
    register_with_any(engine);
}

void registration_cache::register_with(const file_engine& engine)
{
    register_with_any(engine);
}

void registration_cache::add_memory_of(const device& gpu, std::size_t budget_bytes)
{
    if (!gpus_)
        gpus_ = std::make_unique<registrations::gpu_caches>();
    gpus_->add(gpu, budget_bytes, cache_->options(), cache_->nics());
}

registration registration_cache::get(const void* address, std::size_t bytes, access rights)
{
    const registrations::range asked = checked(address, bytes);
    return registration(gpus_ ? &gpus_->get(asked, rights, *cache_) : &cache_->get(asked, rights));
}

void registration_cache::invalidate(const void* address, std::size_t bytes)
{
    const registrations::range gone = clamped(address, bytes);
    if (gpus_)
        gpus_->invalidate(gone);
    cache_->invalidate(gone);
}

std::size_t registration_cache::revoke(const void* address, std::size_t bytes)
{
    const registrations::range gone = clamped(address, bytes);
    return (gpus_ ? gpus_->revoke(gone) : 0) + cache_->revoke(gone);
}

bool registration_cache::drained(const void* address, std::size_t bytes) const noexcept
{
    return !gpus_ || gpus_->drained(clamped(address, bytes));
}

registration_cache_counters registration_cache::counters() const noexcept
{
    registration_cache_counters now = cache_->counters();
    if (gpus_)
        gpus_->add_to(now);
    return now;
}

} // namespace weftio
