// The windows of type 2A that a queue pair has bound: as long as there are any, it is not destroyed.
#pragma once

#include <atomic>
#include <cstdint>

namespace weftio::keys {

class key_table;

/// A count that changes when a bind or an invalidation takes effect, and when the host frees a window.
class held_windows {
 public:
    /// @param table  must outlive this. @param user  window_user::number of the queue pair, of type 2A
    held_windows(key_table& table, std::uint64_t user);
    held_windows(const held_windows&) = delete;
    held_windows& operator=(const held_windows&) = delete;
    ~held_windows();

    /// The queue pair has bound a window, or has freed one, itself or for its peer. Takes no lock.
    void add() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
    void remove() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
    /// Exact between two turns of the queue pair's engine.
    std::uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
    key_table& table_;
    const std::uint64_t user_;
    std::atomic<std::uint32_t> count_{0};
};

} // namespace weftio::keys
