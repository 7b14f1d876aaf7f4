// A number that one thread writes and every thread may read.
#pragma once

#include <atomic>
#include <cstdint>

namespace weftio::core {

/// Monotonic; never blocks. add() is a plain load and store instead of a locked addition, so only one thread may call
/// it. All accesses are relaxed: two counters read together may differ by what happened in between.
class counter {
 public:
    counter() = default;
    counter(const counter&) = delete;
    counter& operator=(const counter&) = delete;

    /// Only the thread that owns the counter. Inlined everywhere: a call costs more than it.
    [[gnu::always_inline]] void add(std::uint64_t amount) noexcept
    {
        value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
    /// Any thread.
    std::uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
    std::atomic<std::uint64_t> value_{0};
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

} // namespace weftio::core
