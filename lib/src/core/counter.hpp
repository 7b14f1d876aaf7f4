// A number that one thread writes and every thread may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace weftio::detail {

/// Monotonic; never blocks. A plain load and store, not a locked addition: that is why only one thread may add.
/// Relaxed throughout: two counters read together may differ by what happened in between.
class counter {
 public:
    counter() = default;
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;

    /// The writer's thread only.
    void add(std::uint64_t amount) noexcept
    {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    /// Any thread.
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
    std::atomic<std::uint64_t> value_{0};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

} // namespace weftio::detail
