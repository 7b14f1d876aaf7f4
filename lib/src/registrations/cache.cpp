#include "registrations/cache.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <rte_telemetry.h>

#include "weftio/error.hpp"

namespace weftio::registrations {

void node::end_last() noexcept
{
    owner->end_last(*this);
}

cache::cache(const registration_cache_options& options)
    : cache(options, std::make_unique<const host_memory>(options.budget_bytes))
{}

cache::cache(const registration_cache_options& options, std::unique_ptr<const memory_source> source)
    : options_(options), source_(std::move(source)), map_(source_->shift())
{
    if (const std::size_t least = source_->grain(); source_->budget_bytes() < least)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: registration_cache: {} is {}, but a registration has at least one {} of {} "
                                "bytes; set {} at least",
                                source_->setting(), source_->budget_bytes(), source_->is_gpu() ? "block" : "page",
                                least, least));
    if (options.staleness == registration_staleness::userfault && !source_->is_gpu())
        monitor_ = std::make_unique<userfault>([this] { handle_changes(); });
    row_.emplace(core::telemetry_kind::registration_cache, [this](rte_tel_data* dict) { fill_row(dict); });
}

void cache::register_with(registrar nic)
{
    const std::scoped_lock lock(mutex_);
    if (live_.load(std::memory_order_relaxed) != 0)
        throw error(errc::in_use, fmt::format("weftio: registration_cache: register_with: {} registrations exist "
                                              "already; call it before the first get()",
                                              live_.load(std::memory_order_relaxed)));
    nics_.push_back(std::move(nic));
}

std::vector<registrar> cache::nics()
{
    const std::scoped_lock lock(mutex_);
    return nics_;
}

bool cache::covers(const node& pages, const range& bytes, access rights) noexcept
{
    return pages.bytes.holds(bytes) && (rights & access::local_write & pages.rights) == (rights & access::local_write);
}

node* cache::find(const range& bytes, access rights) const noexcept
{
    if (needs_remote_key(rights))
        return remote_.hold(bytes, rights);
    node* const pages = map_.find(bytes.begin);
    if (!pages || !pages->hold())
        return nullptr;
    if (covers(*pages, bytes, rights)) [[likely]]
        return pages;
    pages->give_back();
    return nullptr;
}

node& cache::miss(const range& bytes, access rights)
{
    const core::undertaking undertaking;
    if (core::process_exits())
        throw error(errc::closed, "weftio: registration_cache: nothing can be registered while the process exits");
    const unit own = source_->unit_of(bytes);
    if (source_->is_gpu() && !has(own))
        source_->prepare(own); // without the lock: a free may wait for that
    ended out(*this);
    revoked stale(*this);
    const std::scoped_lock lock(mutex_);
    prepare();
    if (source_->is_gpu())
        drop_all({.bytes = own.bytes, .of = own.id, .others = true}, out, stale);
    return needs_remote_key(rights) ? hold_remote_key(bytes, own, rights, out) : hold_pages(bytes, own, rights, out);
}

bool cache::has(const unit& own)
{
    const std::scoped_lock lock(mutex_);
    const auto found = found_.find(own.bytes.begin);
    return found != found_.end() && found->second->id == own.id;
}

node& cache::hold_pages(const range& bytes, const unit& own, access rights, ended& out)
{
    const auto behind = first_behind(bytes.begin);
    if (behind != found_.begin())
        if (node& there = *std::prev(behind)->second; covers(there, bytes, rights)) {
            there.hold();
            hits_.add();
            return there;
        }
    node& made = make_pages(own, rights, out);
    misses_.fetch_add(1, std::memory_order_relaxed);
    return made;
}

node& cache::hold_remote_key(const range& bytes, const unit& own, access rights, ended& out)
{
    if (node* const there = remote_.find(bytes, rights)) {
        there->hold();
        hits_.add();
        return *there;
    }
    registered key = make_region(bytes, rights); // first, because it throws if there are no such rights
    node& pages = hold_pages(bytes, own, rights, out);
    node& made = make_node(bytes, rights, std::move(key));
    made.pages = &pages;
    made.lkey = pages.lkey;
    made.rkey = made.region->lkey();
    try {
        keys_.emplace(bytes.begin, &made);
    } catch (const std::bad_alloc&) {
        abandon(made, out);
        throw;
    }
    longest_key_ = std::max(longest_key_, bytes.bytes());
    made.word.fetch_sub(node::gone | node::freed, std::memory_order_release);
    remote_.add(made);
    made_remote_.fetch_add(1, std::memory_order_relaxed);
    return made;
}

/// With its neighbors, if all of their pages can be registered as one and have room; else alone.
node& cache::make_pages(const unit& own, access rights, ended& out)
{
    node* made = nullptr;
    const neighborhood alone{own.bytes, source_->is_gpu() ? access::local_write : rights & access::local_write, own.id,
                             own.frees, own.context};
    const neighborhood merged = source_->is_gpu() ? alone : with_neighbors(own.bytes, alone.rights);
    if (merged.pages != alone.pages || merged.rights != alone.rights)
        try {
            if (try_pages(merged, out, made))
                return *made;
        } catch (const error&) { // a neighbor is gone, or has not these rights
        }
    if (!try_pages(alone, out, made))
        refuse(own.bytes);
    return *made;
}

/// Returns false if there is no room.
bool cache::try_pages(const neighborhood& what, ended& out, node*& made)
{
    if (source_->booked(what.pages) > source_->budget_bytes())
        return false;
    if (monitor_)
        watch(what.pages); // first: from now on nothing that happens to them is missed
    registered pages = make_region(what.pages, what.rights);
    drop_pages({what.pages}, out);
    if (!make_room(source_->booked(what.pages), out))
        return false;
    made = &make_node(what.pages, what.rights, std::move(pages));
    made->id = what.id;
    made->context = what.context;
    made->frees.store(node::allocated_by_others, std::memory_order_relaxed);
    made->lkey = made->region->lkey();
    try {
        insert(*made);
    } catch (const std::bad_alloc&) {
        abandon(*made, out);
        throw;
    }
    made->frees.store(source_->frees_once_found(what.frees), std::memory_order_relaxed);
    return true;
}

void cache::watch(const range& pages)
try {
    monitor_->watch(pages);
} catch (const error&) {
    (void)source_->adopt(pages, nullptr); // throws what is amiss if they are not mapped
    throw;
}

std::map<std::uintptr_t, node*>::const_iterator cache::first_behind(std::uintptr_t address) const noexcept
{
    return found_.upper_bound(address);
}

cache::neighborhood cache::with_neighbors(const range& own, access rights) const noexcept
{
    neighborhood all{own, rights};
    auto at = first_behind(own.begin);
    if (at != found_.begin() && std::prev(at)->second->bytes.end >= own.begin)
        --at;
    for (; at != found_.end() && at->first <= own.end; ++at) {
        all.pages.begin = std::min(all.pages.begin, at->second->bytes.begin);
        all.pages.end = std::max(all.pages.end, at->second->bytes.end);
        all.rights = all.rights | at->second->rights;
    }
    return all;
}

/// Evicts until so many bytes more are within the budget. Returns false if too much is held.
bool cache::make_room(std::size_t bytes, ended& out) noexcept
{
    // Each may be looked at twice: it was used since it was queued, and then it is queued anew.
    for (std::size_t looks = 2 * eviction_.size();
         bytes_.load(std::memory_order_relaxed) + bytes > source_->budget_bytes(); --looks) {
        if (looks == 0 || eviction_.empty()) // the rest is of dropped pages that handles hold
            return false;
        node& oldest = *eviction_.begin()->second;
        const std::uint64_t used = oldest.used.load(std::memory_order_relaxed);
        if (node::holders_of(oldest.word.load(std::memory_order_relaxed)) != 0) {
            requeue(oldest, std::max(used, core::utc_clock::ticks()));
        } else if (used > oldest.queued) {
            requeue(oldest, used);
        } else if (oldest.claim()) {
            take_from_search(oldest);
            unwatch(oldest.bytes);
            free(oldest, out);
            evictions_.fetch_add(1, std::memory_order_relaxed);
        }
    }
    return true;
}

void cache::requeue(node& pages, std::uint64_t used) noexcept
{
    auto place = eviction_.extract({pages.queued, &pages});
    place.value().first = pages.queued = used;
    eviction_.insert(std::move(place));
}

void cache::free(node& claimed, ended& out) noexcept
{
    if (claimed.pages) {
        take_from_search(claimed);
        keys_.erase({claimed.bytes.begin, &claimed});
    } else {
        bytes_.fetch_sub(source_->booked(claimed.bytes), std::memory_order_relaxed);
    }
    out.add(claimed);
}

cache::registered cache::make_region(const range& bytes, access rights) const
{
    auto drains = source_->is_gpu() ? std::make_shared<draining>(bytes) : nullptr;
    registered made{memory_region(source_->adopt(bytes, drains), {.rights = rights, .domain = options_.domain}),
                    std::move(drains)};
    for (const registrar& nic : nics_)
        nic(made.region);
    return made;
}

/// Allocates what one miss() needs, but for the elements of found_, eviction_ and keys_.
void cache::prepare()
{
    map_.prepare();
    remote_.prepare();
    for (int needed = 2; needed > 0; --needed) // pages and a remote key
        if (!free_ || !free_->after)
            recycled(all_.emplace_back());
}

void cache::recycled(node& free) noexcept
{
    free.after = std::exchange(free_, &free);
}

/// The node has one holder, and still its flags: nobody else can hold it. @pre prepare()
node& cache::make_node(const range& bytes, access rights, registered&& from) noexcept
{
    node& made = *std::exchange(free_, free_->after);
    made.owner = this;
    made.bytes = bytes;
    made.rights = rights;
    made.rkey = 0;
    made.pages = nullptr;
    made.withdrawn = false;
    made.id = {};
    made.region.emplace(std::move(from.region));
    made.drains = std::move(from.drains);
    made.used.store(core::utc_clock::ticks(), std::memory_order_relaxed);
    made.word.fetch_add(1, std::memory_order_relaxed);
    live_.fetch_add(1, std::memory_order_relaxed);
    return made;
}

/// A node of make_node() that nobody can find.
void cache::abandon(node& made, ended& out) noexcept
{
    made.word.fetch_sub(1, std::memory_order_relaxed);
    out.add(made);
}

/// Lets get() find new pages. Throws std::bad_alloc, and has changed nothing then.
void cache::insert(node& pages)
{
    pages.queued = pages.used.load(std::memory_order_relaxed);
    const auto queued = eviction_.emplace(pages.queued, &pages).first;
    try {
        found_.emplace(pages.bytes.begin, &pages);
    } catch (const std::bad_alloc&) {
        eviction_.erase(queued);
        throw;
    }
    bytes_.fetch_add(source_->booked(pages.bytes), std::memory_order_relaxed);
    pages.word.fetch_sub(node::ends | node::gone | node::freed, std::memory_order_release);
    map_.set(pages.bytes, pages);
}

void cache::refuse(const range& own) const
{
    const std::uint64_t held = bytes_.load(std::memory_order_relaxed);
    const std::size_t bytes = source_->booked(own), budget = source_->budget_bytes();
    if (bytes > budget)
        throw error(errc::out_of_memory, fmt::format("weftio: registration_cache: the {} at {:#x} have {} bytes, more "
                                                     "than the budget of {}; raise {}",
                                                     source_->units(), own.begin, bytes, budget, source_->setting()));
    throw error(errc::out_of_memory,
                fmt::format("weftio: registration_cache: no room for {} bytes of {} at {:#x}: handles hold {} bytes of "
                            "the budget of {}; destroy handles, or raise {}",
                            bytes, source_->units(), own.begin, held, budget, source_->setting()));
}

void cache::end_last(node& held) noexcept
{
    const core::undertaking undertaking;
    if (!maker_.may_end()) // in a child of fork() another thread may have had the lock
        return;
    ended out(*this);
    const std::scoped_lock lock(mutex_);
    if (!held.give_back_last())
        return;
    free(held, out);
}

void cache::close() noexcept
{
    const core::undertaking undertaking;
    if (!maker_.may_end())
        return;
    if (monitor_)
        monitor_->stop(); // its threads use the cache
    constexpr range everything{0, std::numeric_limits<std::uintptr_t>::max()};
    bool empty = false;
    {
        ended out(*this);
        const std::scoped_lock lock(mutex_);
        drop_pages({everything}, out);
    }
    for (const auto begin = std::chrono::steady_clock::now();
         !drained(everything) && std::chrono::steady_clock::now() - begin < std::chrono::seconds(1);)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    {
        const std::scoped_lock lock(mutex_);
        closed_ = true;
        empty = live_.load(std::memory_order_relaxed) == 0;
    }
    if (empty) // else the last node ends the cache
        end();
}

/// While the process exits, other threads may look for a hit still: the cache stays, and can be found by leak checkers.
void cache::end() noexcept
{
    if (!core::process_exits()) {
        delete this;
        return;
    }
    static std::atomic<cache*> left{nullptr};
    after_ = left.exchange(this);
}

cache::ended::~ended()
{
    while (first_) {
        node& each = *std::exchange(first_, first_->after);
        node* const pages = each.pages;
        each.region.reset();
        if (auto drains = std::move(each.drains))
            of_.drains_.add(std::move(drains));
        of_.recycle(each);
        if (pages)
            pages->give_back();
    }
}

/// Ends the cache, if it was closed and this was the last node.
void cache::recycle(node& freed) noexcept
{
    {
        const std::scoped_lock lock(mutex_);
        recycled(freed);
        if (live_.fetch_sub(1, std::memory_order_relaxed) != 1 || !closed_)
            return;
    }
    end();
}

registration_cache_counters cache::counters() const noexcept
{
    constexpr auto relaxed = std::memory_order_relaxed;
    registration_cache_counters now{.hits = hits_.sum(),
                                    .misses = misses_.load(relaxed),
                                    .remote_keys = made_remote_.load(relaxed),
                                    .evictions = evictions_.load(relaxed),
                                    .invalidations = invalidations_.load(relaxed),
                                    .revocations = revocations_.load(relaxed),
                                    .bytes = bytes_.load(relaxed),
                                    .registrations = live_.load(relaxed)};
    return now;
}

void cache::fill_row(rte_tel_data* dict) const
{
    const registration_cache_counters now = counters();
    core::put(dict, "hits", now.hits);
    core::put(dict, "misses", now.misses);
    core::put(dict, "remote_keys", now.remote_keys);
    core::put(dict, "evictions", now.evictions);
    core::put(dict, "invalidations", now.invalidations);
    core::put(dict, "revocations", now.revocations);
    core::put(dict, "bytes", now.bytes);
    core::put(dict, "budget_bytes", source_->budget_bytes());
    core::put(dict, "registrations", now.registrations);
    rte_tel_data_add_dict_string(dict, "memory", source_->name().c_str());
    rte_tel_data_add_dict_string(dict, "staleness", monitor_ ? "userfault" : source_->staleness());
}

} // namespace weftio::registrations
