#include "weftio/registration_cache.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "registrations/cache.hpp"
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
    : cache_(std::exchange(other.cache_, nullptr))
{}

registration_cache& registration_cache::operator=(registration_cache&& other) noexcept
{
    const registration_cache old(std::move(*this));
    cache_ = std::exchange(other.cache_, nullptr);
    return *this;
}

registration_cache::~registration_cache()
{
    if (cache_)
        cache_->close();
}

void registration_cache::register_with(const port& port)
{
    cache_->register_with([port](memory_region& region) { region.register_with(port); });
}

void registration_cache::register_with(const dma_engine& engine)
{
    cache_->register_with([engine](memory_region& region) { region.register_with(engine); });
}

void registration_cache::register_with(const file_engine& engine)
{
    cache_->register_with([engine](memory_region& region) { region.register_with(engine); });
}

registration registration_cache::get(const void* address, std::size_t bytes, access rights)
{
    return registration(&cache_->get(checked(address, bytes), rights));
}

void registration_cache::invalidate(const void* address, std::size_t bytes)
{
    cache_->invalidate(clamped(address, bytes));
}

std::size_t registration_cache::revoke(const void* address, std::size_t bytes)
{
    return cache_->revoke(clamped(address, bytes));
}

registration_cache_counters registration_cache::counters() const noexcept
{
    return cache_->counters();
}

} // namespace weftio
