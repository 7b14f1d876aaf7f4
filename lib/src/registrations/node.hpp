// A registration of the cache, and who holds it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/clock.hpp"
#include "weftio/memory.hpp"

namespace weftio::registrations {

class cache;
struct draining;

/// Bytes [begin, end) of the process.
struct range {
    std::uintptr_t begin = 0, end = 0;

    std::size_t bytes() const noexcept { return end - begin; }
    bool holds(const range& other) const noexcept { return begin <= other.begin && other.end <= end; }
    bool overlaps(const range& other) const noexcept { return begin < other.end && other.begin < end; }
    friend bool operator==(const range&, const range&) = default;
};

/// Which memory of a GPU it is: no other memory of the process ever has the same.
struct memory_id {
    std::uint64_t buffer =
        0;                   ///< of the driver, for each allocation; of cuMemMap() it is that of the reserved addresses
    std::uint64_t block = 0; ///< of cuMemMap(): which physical memory is mapped there; else 0

    friend bool operator==(const memory_id&, const memory_id&) = default;
};

/// Pages under a local key, or exact bytes under a remote key.
///
/// A node lives as long as its cache, and is used again. A thread without the lock may come to a node by a pointer that
/// is out of date: it holds the node first, and then looks whether the node is what it has searched. What is not atomic
/// changes only while nobody holds the node. The first cache line has what a hit needs.
struct alignas(64) node {
    /// Number of holders, and flags.
    static constexpr std::uint32_t ends = 1u << 31;  ///< given back with its last holder
    static constexpr std::uint32_t gone = 1u << 30;  ///< nobody can hold it any more
    static constexpr std::uint32_t freed = 1u << 29; ///< given back, or about to be: by the thread that sets it
    static constexpr std::uint32_t holders_of(std::uint32_t word) noexcept { return word & (freed - 1); }

    /// As `frees`: the ID is asked for whenever it counts.
    static constexpr std::uint64_t allocated_by_others = UINT64_MAX;

    std::atomic<std::uint32_t> word{ends | gone | freed};
    std::uint32_t lkey = 0, rkey = 0;
    access rights = access::none;
    range bytes{};
    std::atomic<std::uint64_t> used{0}; ///< when it was last given back, in ticks of core::utc_clock
    std::atomic<std::uint64_t> hash{0}; ///< of a remote key
    std::atomic<node*> next{nullptr};   ///< in the chain of its hash
    node* pages = nullptr;              ///< of a remote key: the node that it holds for its local key
    cache* owner = nullptr;
    std::optional<memory_region> region{}; ///< guarded by `freed`: whoever sets the flag, or makes the node
    node* after = nullptr; ///< in a list of nodes with `freed`, or of remote keys that are being withdrawn
    memory_id id{};        ///< of memory of a GPU
    /// How often memory had been freed unseen when the ID was asked for last: by the device of the cache, or, where
    /// frees are seen, by others.
    std::atomic<std::uint64_t> frees{allocated_by_others};
    std::shared_ptr<draining> drains{}; ///< of memory of a GPU, until it is withdrawn
    // Guarded by the lock of the cache:
    std::uintptr_t context = 0; ///< of a GPU's memory: the context that it ends with; 0: none, or not known
    std::uint64_t queued = 0;   ///< `used` when it was queued for eviction
    bool withdrawn = false;     ///< a remote key that NICs refuse, or soon will, while it is held

    /// Returns whether the caller is now a holder. Any thread; takes no lock, unless it meets the node at its end.
    bool hold() noexcept
    {
        // Acquire, pairs with the release by which the node was made.
        if ((word.fetch_add(1, std::memory_order_acquire) & gone) == 0) [[likely]]
            return true;
        give_back();
        return false;
    }
    /// Ends the caller's hold. The caller must not use the node afterwards.
    void give_back() noexcept
    {
        used.store(core::utc_clock::ticks_at_once(), std::memory_order_relaxed);
        std::uint32_t now = word.load(std::memory_order_relaxed);
        do
            if ((now & ends) != 0 && holders_of(now) == 1) {
                end_last();
                return;
            }
        while (!word.compare_exchange_weak(now, now - 1, std::memory_order_release, std::memory_order_relaxed));
    }
    /// Sets `freed`, and returns true, if nobody holds the node and nobody else has set it.
    bool claim() noexcept
    {
        std::uint32_t now = word.load(std::memory_order_relaxed);
        while (holders_of(now) == 0 && (now & freed) == 0)
            // Acquire, pairs with the releases of its holders.
            if (word.compare_exchange_weak(now, now | ends | gone | freed, std::memory_order_acquire,
                                           std::memory_order_relaxed))
                return true;
        return false;
    }
    /// The caller's hold, which may be the last one of a node that ends with it, under the lock of the cache. Returns
    /// whether it has set `freed`.
    bool give_back_last() noexcept
    {
        std::uint32_t now = word.load(std::memory_order_relaxed);
        for (;;) {
            const bool last = holders_of(now) == 1 && (now & (ends | freed)) == ends;
            if (word.compare_exchange_weak(now, last ? (now - 1) | gone | freed : now - 1, std::memory_order_acq_rel,
                                           std::memory_order_relaxed))
                return last;
        }
    }

 private:
    void end_last() noexcept;
};

} // namespace weftio::registrations
