// Memory windows in the key table. A window's slot has the memory of the bytes that are lent, as a region's has its
// own.
#include <algorithm>
#include <atomic>

#include "keys/held_windows.hpp"
#include "keys/key_table.hpp"
#include "keys/resolve.hpp"
#include "weftio/device/platform.h"

namespace weftio::keys {

namespace {

constexpr access peers_rights = access::remote_write | access::remote_read | access::remote_atomic,
                 changing_rights = access::remote_write | access::remote_atomic;

bool gives(access rights, access right) noexcept
{
    return (rights & right) == right;
}

/// The bytes of a region that a bind names, as an entry: none of those that are not in it. A region may end at the last
/// address, so ends are not computed.
key_entry part_of(const key_entry& region, const window_bind& what) noexcept
{
    const std::uint64_t before = what.address < region.base ? region.base - what.address : 0;
    const std::uint64_t skipped = std::min(before == 0 ? what.address - region.base : 0, region.bytes);
    key_entry part = region;
    part.base = region.base + skipped;
    part.bytes = std::min(what.bytes > before ? what.bytes - before : 0, region.bytes - skipped);
    if (part.cpu != nullptr)
        part.cpu = region.cpu + skipped;
    part.rights = what.rights & (what.strict ? peers_rights : access::remote_write | access::remote_read);
    return part;
}

} // namespace

std::uint64_t window_user::next_number(std::uint32_t queue, bool is_2a) noexcept
{
    static std::atomic<std::uint64_t> given{0};
    const std::uint64_t number = (given.fetch_add(1, std::memory_order_relaxed) + 1) << 24 | (queue & 0xffffff);
    return is_2a ? number | type_2a : number & ~type_2a;
}

refusal resolve_stale(const nic_keys& keys, const named& what, const key_view& region, located& out) noexcept
{
    if (!gives(region.entry.rights, what.rights))
        return lack_of(what.rights);
    if (!region.entry.holds(what.address, what.bytes))
        return refusal::outside_region;
    located found;
    locate(region, what.key, what.address, found);
    const refusal why = keys.judge({.key = what.key,
                                    .address = what.address,
                                    .bytes = what.bytes,
                                    .at = found.cpu,
                                    .rights = what.rights,
                                    .peers_of = what.peers_of});
    if (why == refusal::none)
        out = found;
    return why;
}

/// The domain is stored last, with release: who sees it sees the others.
void key_table::mark_stale(std::uint32_t key, std::uint64_t mark) noexcept
{
    slot& at = existing(key);
    const protection_domain domain = at.domain.load(std::memory_order_relaxed);
    if (at.key.load(std::memory_order_relaxed) != key || domain == stale_)
        return;
    at.user_or_next.store(mark, std::memory_order_relaxed);
    at.window_domain.store(domain, std::memory_order_relaxed);
    at.domain.store(stale_, std::memory_order_release);
}

refusal key_table::judge(stale_access of) const noexcept
{
    const slot& named = existing(of.key);
    const slot& region = named.what.load(std::memory_order_relaxed) == kind::region
                             ? named
                             : existing(named.windows_or_region.load(std::memory_order_acquire));
    of.mark = region.user_or_next.load(std::memory_order_relaxed);
    return judge_.load(std::memory_order_acquire)(of);
}

/// The domain of a region, of which `read` was read.
protection_domain key_table::domain_of(const slot& region, protection_domain read) const noexcept
{
    return read == stale_ ? region.window_domain.load(std::memory_order_relaxed) : read;
}

held_windows::held_windows(key_table& table, std::uint64_t user) : table_(table), user_(user)
{
    table_.count_for(user_, &count_);
}

held_windows::~held_windows()
{
    table_.count_for(user_, nullptr);
}

std::uint32_t key_table::add_window(window_type type, protection_domain domain, unsigned nic)
{
    std::uint32_t key = none_;
    {
        const std::scoped_lock one_at_a_time(changing_);
        const std::uint32_t index = take_index(free_windows_, "memory_window");
        slot& made = existing(index << 8);
        key = index << 8 | made.variant;
        made.what.store(kind_of(type), std::memory_order_release);
        made.domain.store(windows_, std::memory_order_release);
        made.window_domain.store(domain, std::memory_order_release);
        ++in_use_;
    }
    grant(key, nic, false); // with release: who finds it sees what it is
    return key;
}

key_table::slot* key_table::window_at(std::uint32_t key, unsigned nic) const noexcept
{
    slot* const at = place(key);
    const bool ours = at && (at->nics.load(std::memory_order_acquire) >> nic & 1) != 0;
    return ours && at->what.load(std::memory_order_relaxed) != kind::region ? at : nullptr;
}

refusal key_table::bind(const window_bind& what, const window_user& by, unsigned nic) noexcept
{
    slot* const at = window_at(what.window, nic);
    if (at == nullptr)
        return refusal::not_a_window;
    at->begin_change();
    const refusal why = bind_at(*at, what, by, nic);
    at->end_change();
    return why;
}

/// In the order of what a reason tells: first the window, then the region. Stores are releases, as in slot::store().
/// @pre begin_change()
refusal key_table::bind_at(slot& window, const window_bind& what, const window_user& by, unsigned nic) noexcept
{
    const std::uint32_t present = window.key.load(std::memory_order_relaxed);
    if (window.what.load(std::memory_order_relaxed) != kind_of(what.type))
        return refusal::wrong_window_type;
    if (window.window_domain.load(std::memory_order_relaxed) != by.domain)
        return refusal::window_domain;
    if (present != none_ && what.type == window_type::type_2)
        return refusal::window_not_free;
    if (present != none_ && present != what.window)
        return refusal::wrong_window_key;
    if (what.bytes == 0) {
        if (what.type == window_type::type_2)
            return refusal::window_without_bytes;
        free(window);
        window.user_or_next.store(maybe_in_use_, std::memory_order_release); // at other engines
        window.variant.store(what.variant, std::memory_order_release);
        return refusal::none;
    }
    if (!hold(what.region))
        return refusal::window_region;
    key_view region;
    refusal why = refusal::none;
    if (!read(what.region, nic, region) || existing(what.region).what.load(std::memory_order_relaxed) != kind::region)
        why = refusal::window_region;
    else if (domain_of(existing(what.region), region.entry.domain) != by.domain)
        why = refusal::window_domain;
    else if (!gives(region.entry.rights, access::bind))
        why = refusal::no_bind;
    else if (region.entry.base == 0)
        why = refusal::window_zero_based;
    else if ((what.rights & changing_rights) != access::none && !gives(region.entry.rights, access::local_write))
        why = refusal::window_local_write;
    else if (what.strict && !region.entry.holds(what.address, what.bytes))
        why = refusal::window_outside_region;
    if (why != refusal::none) {
        let_go(what.region);
        return why;
    }
    free(window); // of type 1, which may have been bound
    key_entry part = part_of(region.entry, what);
    part.domain = windows_;
    window.store(part);
    window.windows_or_region.store(what.region, std::memory_order_release);
    window.user_or_next.store(what.type == window_type::type_2 ? by.number : 0, std::memory_order_release);
    window.variant.store(what.variant, std::memory_order_release);
    // Release, pairs with the acquire in read(), as in add().
    window.key.store((what.window & ~0xffu) | what.variant, std::memory_order_release);
    return refusal::none;
}

bool key_table::hold(std::uint32_t region) noexcept
{
    slot* const at = place(region);
    if (at == nullptr || at->what.load(std::memory_order_relaxed) != kind::region)
        return false;
    std::uint32_t windows = at->windows_or_region.load(std::memory_order_relaxed);
    // Acquire, pairs with the release in open_to_windows(): read() sees the entry of the region as it is now.
    while (windows != closed_)
        if (at->windows_or_region.compare_exchange_weak(windows, windows + 1, std::memory_order_acquire,
                                                        std::memory_order_relaxed))
            return true;
    return false;
}

void key_table::let_go(std::uint32_t region) noexcept
{
    existing(region).windows_or_region.fetch_sub(1, std::memory_order_release);
}

/// @return the queue pair that had bound it; 0: it was free, or of type 1
/// @pre begin_change()
std::uint64_t key_table::free(slot& window) noexcept
{
    if (window.key.load(std::memory_order_relaxed) == none_)
        return 0;
    window.key.store(none_, std::memory_order_release);
    const std::uint64_t user = window.user_or_next.exchange(0, std::memory_order_release);
    let_go(window.windows_or_region.exchange(none_, std::memory_order_release));
    return user;
}

/// A window that the host has freed: the queue pair does not know it.
void key_table::count_freed(std::uint64_t user) noexcept
{
    if ((user & window_user::type_2a) == 0)
        return;
    const std::scoped_lock one_at_a_time(changing_);
    if (const auto found = counts_.find(user); found != counts_.end())
        found->second->fetch_sub(1, std::memory_order_relaxed);
}

void key_table::count_for(std::uint64_t user, std::atomic<std::uint32_t>* count)
{
    const std::scoped_lock one_at_a_time(changing_);
    if (count != nullptr)
        counts_[user] = count;
    else
        counts_.erase(user);
}

/// Whether a queue pair of this domain may use or free the window: of type 2A, its number alone decides.
bool key_table::may_use_domain(const slot& window, const window_user& by) noexcept
{
    return (window.user_or_next.load(std::memory_order_acquire) & window_user::type_2a) != 0 ||
           window.window_domain.load(std::memory_order_relaxed) == by.domain;
}

refusal key_table::may_invalidate(std::uint32_t key, const window_user& by, unsigned nic) const noexcept
{
    const slot* const at = window_at(key, nic);
    if (at == nullptr)
        return refusal::not_a_window;
    if (at->what.load(std::memory_order_relaxed) != kind::type_2)
        return refusal::wrong_window_type;
    if (!may_use_domain(*at, by))
        return refusal::window_domain;
    const std::uint32_t present = at->key.load(std::memory_order_acquire);
    if (present == none_)
        return refusal::window_free;
    if (present != key)
        return refusal::wrong_window_key;
    return at->user_or_next.load(std::memory_order_relaxed) == by.number ? refusal::none
                                                                         : refusal::window_of_other_queue;
}

refusal key_table::invalidate(std::uint32_t key, const window_user& by, unsigned nic) noexcept
{
    slot* const at = window_at(key, nic);
    if (at == nullptr)
        return refusal::not_a_window;
    at->begin_change();
    const refusal why = may_invalidate(key, by, nic);
    if (why == refusal::none)
        free(*at);
    at->end_change();
    return why;
}

refusal key_table::why_unknown(std::uint32_t key, unsigned nic) const noexcept
{
    return window_at(key, nic) == nullptr ? refusal::unknown_key : refusal::window_free;
}

refusal key_table::check_window(std::uint32_t key, unsigned nic, const window_user& by, access needed,
                                std::uint32_t generation) const noexcept
{
    const slot& at = existing(key);
    const kind what = at.what.load(std::memory_order_relaxed);
    if (what == kind::region)
        return at.domain.load(std::memory_order_acquire) == stale_ &&
                       at.window_domain.load(std::memory_order_relaxed) == by.domain
                   ? refusal::memory_gone
                   : refusal::other_domain;
    if (by.number == 0)
        return refusal::window_as_lkey;
    if (!may_use_domain(at, by))
        return refusal::other_domain;
    if (what == kind::type_2 && at.user_or_next.load(std::memory_order_acquire) != by.number)
        return refusal::window_of_other_queue;
    if (needed == access::remote_atomic && !gives(at.rights.load(std::memory_order_acquire), needed))
        return refusal::window_atomic;
    const std::uint32_t region = at.windows_or_region.load(std::memory_order_acquire);
    if (!still(key, nic, generation))
        return refusal::window_free;
    return existing(region).domain.load(std::memory_order_acquire) == stale_ ? refusal::memory_gone : refusal::none;
}

bool key_table::withdraw_window(std::uint32_t key) noexcept
{
    slot& gone = existing(key);
    gone.begin_change();
    const bool in_use = gone.key.load(std::memory_order_relaxed) != none_ ||
                        gone.user_or_next.load(std::memory_order_relaxed) == maybe_in_use_;
    const std::uint64_t user = free(gone);
    gone.user_or_next.store(0, std::memory_order_release);
    gone.window_domain.store(protection_domain::make(), std::memory_order_release); // no queue has it
    gone.end_change();
    count_freed(user);
    return in_use;
}

void key_table::release_window(std::uint32_t key) noexcept
{
    const std::scoped_lock one_at_a_time(changing_);
    ++place(key)->variant;
    give_back(key >> 8, free_windows_);
}

/// As read(): the caller may lose its core at any time, and engines do not wait for it.
window_view key_table::window(std::uint32_t key) const noexcept
{
    const slot& at = existing(key);
    for (;;) {
        const std::uint32_t generation = at.sequence.load(std::memory_order_acquire);
        const bool valid = at.key.load(std::memory_order_acquire) != none_;
        const window_view seen{.key = (key & ~0xffu) | at.variant.load(std::memory_order_acquire),
                               .type = at.what.load(std::memory_order_acquire) == kind::type_1 ? window_type::type_1
                                                                                               : window_type::type_2,
                               .valid = valid,
                               .region = valid ? at.windows_or_region.load(std::memory_order_acquire) : none_,
                               .user = valid ? at.user_or_next.load(std::memory_order_acquire) : 0,
                               .domain = at.window_domain.load(std::memory_order_acquire)};
        if ((generation & 1) == 0 && at.sequence.load(std::memory_order_relaxed) == generation)
            return seen;
        weftio_relax(1);
    }
}

std::uint32_t key_table::windows_of(std::uint32_t region) const noexcept
{
    const std::uint32_t windows = existing(region).windows_or_region.load(std::memory_order_acquire);
    return windows == closed_ ? 0 : windows;
}

std::uint32_t key_table::close_to_windows(std::uint32_t region) noexcept
{
    std::uint32_t windows = 0;
    std::atomic<std::uint32_t>& of = existing(region).windows_or_region;
    return of.compare_exchange_strong(windows, closed_, std::memory_order_acq_rel) || windows == closed_ ? 0 : windows;
}

void key_table::open_to_windows(std::uint32_t region) noexcept
{
    existing(region).windows_or_region.store(0, std::memory_order_release);
}

template <class Each>
void key_table::for_each_window(Each&& each) const
{
    std::uint32_t end = 0;
    {
        const std::scoped_lock one_at_a_time(changing_);
        end = next_;
    }
    for (std::uint32_t index = first_index; index != end; ++index)
        if (slot& at = existing(index << 8); at.what.load(std::memory_order_relaxed) != kind::region)
            each(at);
}

std::uint32_t key_table::free_windows_of(std::uint32_t region) noexcept
{
    std::uint32_t freed = 0;
    while (close_to_windows(region) != 0)
        for_each_window([&](slot& window) {
            std::uint64_t user = 0;
            window.begin_change();
            if (window.key.load(std::memory_order_relaxed) != none_ &&
                window.windows_or_region.load(std::memory_order_relaxed) == region) {
                user = free(window);
                window.user_or_next.store(maybe_in_use_, std::memory_order_release);
                ++freed;
            }
            window.end_change();
            count_freed(user);
        });
    return freed;
}

} // namespace weftio::keys
