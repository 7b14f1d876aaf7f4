// What takes registrations from the cache before their time: other memory at their addresses, and the program.
#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/log.hpp"
#include "core/printable.hpp"
#include "core/process.hpp"
#include "registrations/cache.hpp"

namespace weftio::registrations {

/// Those that nobody holds end now, the others with their last holder. Returns how many there were.
/// @param held  where those go that somebody holds and whose keys are withdrawn; nullptr: they stay valid
unsigned cache::drop_pages(const dropping& what, ended& out, revoked* held) noexcept
{
    unsigned dropped = 0;
    auto at = first_behind(what.bytes.begin);
    if (at != found_.begin() && std::prev(at)->second->bytes.overlaps(what.bytes))
        --at;
    while (at != found_.end() && at->second->bytes.overlaps(what.bytes)) {
        node& found = *at++->second;
        if (!what.takes(found))
            continue;
        ++dropped;
        take_from_search(found);
        found.word.fetch_or(node::ends | node::gone, std::memory_order_relaxed);
        if (found.claim())
            free(found, out);
        else if (held)
            held->add(found);
    }
    return dropped;
}

/// @param held  where keys go that somebody holds; nullptr: they stay valid until their last holder
void cache::drop_remote_keys(const dropping& what, ended& out, revoked* held) noexcept
{
    const range& bytes = what.bytes;
    auto at = keys_.lower_bound({bytes.begin - std::min(bytes.begin, longest_key_), nullptr});
    while (at != keys_.end() && at->first < bytes.end) {
        node& key = *at++->second;
        if (!key.bytes.overlaps(bytes) || !what.takes(*key.pages))
            continue;
        take_from_search(key);
        key.word.fetch_or(node::gone, std::memory_order_relaxed);
        if (key.claim())
            free(key, out);
        else if (held)
            held->add(key);
    }
}

/// Of a GPU's memory also the local keys of handles: a copy engine that is given the address of memory that is gone
/// fails for good.
void cache::drop_all(const dropping& what, ended& out, revoked& held) noexcept
{
    drop_remote_keys(what, out, &held);
    invalidations_.fetch_add(drop_pages(what, out, source_->is_gpu() ? &held : nullptr), std::memory_order_relaxed);
}

void cache::take_from_search(node& found) noexcept
{
    if (found.pages) {
        remote_.remove(found);
        return;
    }
    map_.clear(found.bytes);
    found_.erase(found.bytes.begin);
    eviction_.erase({found.queued, &found});
}

/// Pages that get() finds no longer, unless a key that is still valid needs their events.
void cache::unwatch(const range& pages) noexcept
{
    if (!monitor_)
        return;
    const auto key = keys_.lower_bound({pages.begin - std::min(pages.begin, longest_key_), nullptr});
    if (key == keys_.end() || key->first >= pages.end)
        monitor_->unwatch(pages);
}

void cache::invalidate(const range& bytes)
{
    const core::undertaking undertaking;
    ended out(*this);
    const std::scoped_lock lock(mutex_);
    drop_remote_keys({bytes}, out, nullptr);
    invalidations_.fetch_add(drop_pages({bytes}, out), std::memory_order_relaxed);
}

std::size_t cache::revoke(const range& bytes, const memory_id& of)
{
    const core::undertaking undertaking;
    ended out(*this);
    revoked held(*this);
    {
        const std::scoped_lock lock(mutex_);
        drop_all({.bytes = bytes, .of = of}, out, held);
    }
    return held.withdraw();
}

void cache::freed(std::uintptr_t begin) noexcept
{
    const core::undertaking undertaking;
    ended out(*this);
    revoked held(*this);
    const std::scoped_lock lock(mutex_);
    if (const range bytes = allocation_at(begin); bytes.bytes() != 0)
        drop_all({.bytes = bytes}, out, held);
}

void cache::context_ended(std::uintptr_t context) noexcept
{
    constexpr range everything{0, std::numeric_limits<std::uintptr_t>::max()};
    const core::undertaking undertaking;
    ended out(*this);
    revoked held(*this);
    const std::scoped_lock lock(mutex_);
    drop_all({.bytes = everything, .context = context}, out, held);
}

/// Its pages may have been dropped, while somebody holds a remote key of them. No bytes: nothing was made from it.
range cache::allocation_at(std::uintptr_t begin) const noexcept
{
    if (const auto found = found_.find(begin); found != found_.end())
        return found->second->bytes;
    const auto key = keys_.lower_bound({begin, nullptr});
    return key != keys_.end() && key->second->pages->bytes.begin == begin ? key->second->pages->bytes : range{};
}

/// Memory has been unmapped, moved or emptied. Calls nothing of the program while the process exits.
void cache::handle_changes() noexcept
{
    const core::undertaking undertaking;
    if (core::process_exits()) // NICs stand still, or soon will
        return;
    ended out(*this);
    revoked held(*this);
    const std::scoped_lock lock(mutex_);
    monitor_->take([&](const range& changed) { drop_all({changed}, out, held); });
}

void cache::revoked::add(node& key) noexcept
{
    if (key.withdrawn)
        return;
    key.withdrawn = true;
    key.word.fetch_add(1, std::memory_order_relaxed);
    key.after = std::exchange(first_, &key);
}

std::size_t cache::revoked::withdraw() noexcept
{
    std::size_t count = 0;
    while (first_) {
        node& key = *std::exchange(first_, first_->after);
        count += of_.withdraw(key) ? 1 : 0;
        key.give_back();
    }
    return count;
}

bool cache::withdraw(node& key) noexcept
try {
    key.region->close();
    if (auto drains = std::move(key.drains))
        drains_.add(std::move(drains));
    revocations_.fetch_add(1, std::memory_order_relaxed);
    if (options_.on_revoked)
        options_.on_revoked(key.pages ? key.rkey : key.lkey);
    return true;
} catch (const std::exception& why) {
    core::log(log_level::warning, fmt::format("registration_cache: key {:#x} could not be withdrawn: {}", key.rkey,
                                              core::printable(why.what())));
    return false;
}

} // namespace weftio::registrations
