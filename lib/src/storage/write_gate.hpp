// Direct and cached writes of one file, kept apart in time.
#pragma once

#include <atomic>
#include <cstdint>

namespace weftio::storage {

/// The kernel must not have a folio dirty in the page cache beside bytes that a direct write is replacing: it could not
/// drop the folio afterwards, and would show its stale bytes. Folios are larger than pages, so no distance is enough:
/// direct writes run together, and cached writes do, but not both. Waiting cached writes keep new direct ones out.
class write_gate {
 public:
    enum class kind : std::uint8_t { none, direct, cached };

    /// Never blocks. False: writes of the other kind are in flight.
    bool try_enter(kind which) noexcept
    {
        std::int64_t inside = inside_.load(std::memory_order_relaxed);
        const bool direct = which == kind::direct;
        do {
            if (direct ? inside < 0 || waiting_.load(std::memory_order_relaxed) != 0 : inside > 0)
                return false;
        } while (!inside_.compare_exchange_weak(inside, inside + (direct ? 1 : -1), std::memory_order_acquire));
        return true;
    }
    void leave(kind which) noexcept { inside_.fetch_add(which == kind::direct ? -1 : 1, std::memory_order_release); }
    /// A cached write begins, or ends, to wait for try_enter().
    void wait() noexcept { waiting_.fetch_add(1, std::memory_order_relaxed); }
    void waited() noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }

 private:
    std::atomic<std::int64_t> inside_{0}; ///< direct writes, or less than 0: cached ones
    std::atomic<std::int64_t> waiting_{0};
};

} // namespace weftio::storage
