// What happens to mappings, as Linux tells it (userfaultfd(2)).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

#include "registrations/node.hpp"

namespace weftio::registrations {

/// A userfaultfd that tells UNMAP, REMAP and REMOVE of what watch_pages() was called for. Pages are registered for
/// write protection, and none is ever protected: no access faults. @return the descriptor, or -errno: the system
/// refuses it
int open_userfault() noexcept;
/// @return 0, or errno: EBUSY another userfaultfd has the pages, EINVAL they are those of a file
int watch_pages(int userfault, const range& pages) noexcept;
void unwatch_pages(int userfault, const range& pages) noexcept;

/// Watches pages for munmap(), mremap() and madvise() that drops pages (open_userfault()).
///
/// The system call that changes a mapping waits until its event has been read. So the thread that reads takes no lock
/// and neither allocates nor frees: whatever others do under their locks, it lets them go on. Another thread handles
/// what was read.
///
/// - Threads: is_quiet() from any, without a lock. take() and the watching under the lock of the cache.
class userfault {
 public:
    /// @param handle  called on a thread of the monitor when there is something to take()
    /// @throws weftio::error errc::permission_denied, errc::not_supported: the system refuses it
    explicit userfault(std::function<void()> handle);
    userfault(const userfault&) = delete;
    userfault& operator=(const userfault&) = delete;
    ~userfault();
    /// Ends both threads, and the watching, also when handles outlive the cache. Blocks while `handle` runs. Afterwards
    /// nothing is told. @pre no watch() and unwatch() afterwards
    void stop() noexcept;

    /// @throws weftio::error errc::not_supported pages of a file; errc::in_use another userfaultfd has them
    void watch(const range& pages);
    void unwatch(const range& pages) noexcept;
    /// Whether all events have been taken whose system call has returned.
    bool is_quiet() const noexcept
    {
        return announced_.load(std::memory_order_acquire) == taken_.load(std::memory_order_acquire);
    }
    /// Calls `each(range)` for what has changed. Blocks for one read() of the other thread.
    template <class Each>
    void take(Each&& each) noexcept
    {
        const std::uint64_t all = announced_.load(std::memory_order_acquire);
        while (read_.load(std::memory_order_acquire) < all)
            std::this_thread::yield();
        if (overflowed_.exchange(false, std::memory_order_acq_rel))
            each(range{0, UINTPTR_MAX});
        for (; first_ != last_.load(std::memory_order_acquire); first_.fetch_add(1, std::memory_order_release))
            each(changed_[first_ % changed_.size()]);
        taken_.store(all, std::memory_order_release);
    }

 private:
    void read_events() noexcept;
    void read_all() noexcept;
    void put(const range& changed) noexcept;
    void handle_events(const std::function<void()>& handle);

    const int descriptor_, wake_, stop_; ///< closed by read_events(); the last two are eventfds
    /// Counts readings: begun, ended, and taken. A reading is announced before the caller of munmap() can go on.
    std::atomic<std::uint64_t> announced_{0}, read_{0}, taken_{0};
    std::array<range, 1024> changed_; ///< a ring from one thread to take()
    std::atomic<std::size_t> first_{0}, last_{0};
    std::atomic<bool> overflowed_{false}; ///< the ring was full: anything may have changed
    std::atomic<bool> handler_ends_{false};
    std::thread reader_, handler_;
};

} // namespace weftio::registrations
