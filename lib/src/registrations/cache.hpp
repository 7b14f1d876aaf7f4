// The registrations of one cache: found without a lock, made and given back under one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/process.hpp"
#include "core/telemetry.hpp"
#include "registrations/drains.hpp"
#include "registrations/hit_counter.hpp"
#include "registrations/memory_source.hpp"
#include "registrations/node.hpp"
#include "registrations/page_map.hpp"
#include "registrations/remote_keys.hpp"
#include "registrations/userfault.hpp"
#include "weftio/device.hpp"
#include "weftio/registration_cache.hpp"

namespace weftio::registrations {

/// How a region of the cache is registered with one port or engine.
using registrar = std::function<void(memory_region&)>;

/// What registration_cache promises. Deletes itself once it is closed and nobody holds a node of it.
///
/// Regions are destroyed without the lock, because that waits for engines. Whatever takes the lock is an undertaking:
/// exit() in a callback, or in a signal handler of a thread that has the lock, then leaves the cache alone.
class cache {
 public:
    /// Of memory of the host.
    explicit cache(const registration_cache_options& options);
    cache(const registration_cache_options& options, std::unique_ptr<const memory_source> source);
    cache(const cache&) = delete;
    cache& operator=(const cache&) = delete;

    void register_with(registrar nic);
    /// Ports and engines, for another cache.
    std::vector<registrar> nics();
    const registration_cache_options& options() const noexcept { return options_; }
    /// Returns a node that the caller holds.
    node& get(const range& bytes, access rights)
    {
        if (node* const found = hit(bytes, rights)) [[likely]]
            return *found;
        return miss(bytes, rights);
    }
    /// The same if it is registered; else nullptr.
    node* hit(const range& bytes, access rights)
    {
        if (monitor_ && !monitor_->is_quiet())
            handle_changes();
        node* const found = find(bytes, rights);
        if (found) [[likely]]
            hits_.add();
        return found;
    }
    /// The same, not counted, and without a look whether it is stale.
    node* find(const range& bytes, access rights) const noexcept;
    node& miss(const range& bytes, access rights);
    void count_hit() noexcept { hits_.add(); }
    void invalidate(const range& bytes);
    /// @param of  of GPUs: only what was made from that memory; {}: all
    std::size_t revoke(const range& bytes, const memory_id& of = {});
    /// Of GPUs, on the thread that frees, which never waits for a GPU here. The allocation that begins there is about
    /// to be freed, if one does, or all memory of that context.
    void freed(std::uintptr_t begin) noexcept;
    void context_ended(std::uintptr_t context) noexcept;
    /// See registration_cache::drained().
    bool drained(const range& bytes) noexcept { return drains_.drained(bytes); }
    registration_cache_counters counters() const noexcept;
    /// Ends the cache, but for what is held. The caller must not use it afterwards.
    void close() noexcept;
    /// See node::give_back(): the caller holds the node, maybe as the last one.
    void end_last(node& held) noexcept;

    /// A right that only a remote key gives.
    static constexpr bool needs_remote_key(access rights) noexcept
    {
        return (static_cast<unsigned>(rights) & ~static_cast<unsigned>(access::local_write)) != 0;
    }

 private:
    /// Nodes with `freed` whose regions are to be destroyed: when it ends, without the lock.
    class ended {
     public:
        explicit ended(cache& of) noexcept : of_(of) {}
        ended(const ended&) = delete;
        ended& operator=(const ended&) = delete;
        ~ended();
        void add(node& claimed) noexcept { claimed.after = std::exchange(first_, &claimed); }

     private:
        cache& of_;
        node* first_ = nullptr;
    };
    /// Remote keys that are held, by `this` too: when it ends, without the lock, it withdraws them.
    class revoked {
     public:
        explicit revoked(cache& of) noexcept : of_(of) {}
        revoked(const revoked&) = delete;
        revoked& operator=(const revoked&) = delete;
        ~revoked() { withdraw(); }
        /// @pre somebody holds the key, and it ends with its last holder
        void add(node& key) noexcept;
        std::size_t withdraw() noexcept; ///< returns how many

     private:
        cache& of_;
        node* first_ = nullptr;
    };
    struct neighborhood {
        range pages;
        access rights;
        memory_id id{};
        std::uint64_t frees = node::allocated_by_others;
        std::uintptr_t context = 0;
    };
    struct registered {
        memory_region region;
        std::shared_ptr<draining> drains;
    };
    /// What is dropped, and whose keys are withdrawn while handles have them.
    struct dropping {
        range bytes;
        memory_id of{};             ///< of GPUs: of this memory only; {}: of all
        bool others = false;        ///< of all but this one
        std::uintptr_t context = 0; ///< of GPUs: of this context only; 0: of all

        bool takes(const node& pages) const noexcept
        {
            return pages.bytes.overlaps(bytes) && (of == memory_id{} || (pages.id == of) != others) &&
                   (context == 0 || pages.context == context);
        }
    };

    bool has(const unit& own);
    static bool covers(const node& pages, const range& bytes, access rights) noexcept;
    void recycle(node& freed) noexcept;
    void end() noexcept;
    void handle_changes() noexcept;
    bool withdraw(node& key) noexcept;
    void fill_row(rte_tel_data* dict) const;

    // Under the lock:
    node& hold_pages(const range& bytes, const unit& own, access rights, ended& out);
    node& hold_remote_key(const range& bytes, const unit& own, access rights, ended& out);
    node& make_pages(const unit& own, access rights, ended& out);
    bool try_pages(const neighborhood& what, ended& out, node*& made);
    neighborhood with_neighbors(const range& own, access rights) const noexcept;
    std::map<std::uintptr_t, node*>::const_iterator first_behind(std::uintptr_t address) const noexcept;
    unsigned drop_pages(const dropping& what, ended& out, revoked* held = nullptr) noexcept;
    void drop_remote_keys(const dropping& what, ended& out, revoked* held) noexcept;
    void drop_all(const dropping& what, ended& out, revoked& held) noexcept;
    range allocation_at(std::uintptr_t begin) const noexcept;
    void take_from_search(node& found) noexcept;
    void watch(const range& pages);
    void unwatch(const range& pages) noexcept;
    bool make_room(std::size_t bytes, ended& out) noexcept;
    void requeue(node& pages, std::uint64_t used) noexcept;
    void free(node& claimed, ended& out) noexcept;
    registered make_region(const range& bytes, access rights) const;
    void prepare();
    void recycled(node& free) noexcept;
    node& make_node(const range& bytes, access rights, registered&& made) noexcept;
    void abandon(node& made, ended& out) noexcept;
    void insert(node& pages);
    [[noreturn]] void refuse(const range& own) const;

    const core::maker maker_{};
    const registration_cache_options options_;
    const std::unique_ptr<const memory_source> source_;
    page_map map_;
    remote_keys remote_;

    std::mutex mutex_; ///< guards the members below, and map_ and remote_ except their searches
    std::vector<registrar> nics_;
    std::deque<node> all_;                               ///< a node never moves
    node* free_ = nullptr;                               ///< linked by node::after
    std::map<std::uintptr_t, node*> found_;              ///< pages that get() finds, by their first byte
    std::set<std::pair<std::uint64_t, node*>> eviction_; ///< the same, the least recently used first (node::queued)
    std::set<std::pair<std::uintptr_t, node*>> keys_;    ///< remote keys, by their first byte
    std::size_t longest_key_ = 0;                        ///< bytes of the longest remote key that there was
    bool closed_ = false;
    cache* after_ = nullptr; ///< in a list of those that have ended while the process exits

    hit_counter hits_;
    std::atomic<std::uint64_t> misses_{0}, made_remote_{0}, evictions_{0}, invalidations_{0}, bytes_{0}, live_{0};
    std::atomic<std::uint64_t> revocations_{0};
    drains drains_;
    std::unique_ptr<userfault> monitor_;     ///< nullptr: close_first
    std::optional<core::telemetry_row> row_; ///< last member, destroyed first: it reads the others
};

} // namespace weftio::registrations
