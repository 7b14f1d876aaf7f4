// From the host to the NIC: frames in an arena, records in a ring, a kernel that turns records into entries.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "send/replay.kernel.h"
#include "weftio/weftio.hpp"

namespace weftio::replay {

struct conveyor_options {
    std::uint64_t arena_bytes = 16 * 1024 * 1024;
    std::uint32_t records = 65536;
    std::uint32_t entries = 16384; ///< of the send queue
    std::uint32_t lanes = 1;       ///< of the kernel's block
    bool timed = true;             ///< frames wait for their time
};

/// Carries frames to a port in order. Nothing is allocated and nothing locks while it runs.
///
/// - Threads: one feeds (reserve to close, reclaim); notified() is for the thread that reads notifications; the rest
///   before and after.
class conveyor {
 public:
    /// What is remembered of a frame until it has been accounted for.
    struct remark {
        std::uint64_t planned_ns = 0; ///< UTC; 0 in untimed runs
        std::uint32_t file = 0;
        std::uint32_t bytes = 0;
        std::uint32_t entry = 0; ///< position of its send entry
        std::uint64_t arena_end = 0;
    };

    /// @throws weftio::error as eth_txq, memory_region and device::allocate do
    conveyor(const port& port, const device& device, const conveyor_options& options);

    /// Starts the kernel and waits until it runs. @throws weftio::error as device::launch
    void start();
    /// UTC of offset 0. Before the first put().
    void set_anchor(std::uint64_t utc_ns) noexcept { anchor_ns_ = utc_ns; }
    std::uint64_t anchor_ns() const noexcept { return anchor_ns_; }

    /// Room for a frame of up to `bytes`, or nullptr while there is none. Never blocks.
    std::uint8_t* reserve(std::uint32_t bytes) noexcept;
    /// Keeps the frame that was written to the room reserved last; returns its place.
    std::uint32_t keep(std::uint32_t bytes) noexcept;
    /// Whether another record fits.
    bool has_record_room() const noexcept;
    /// Appends a record for the frame at `place`; it is not taken before publish(). @pre has_record_room()
    void put(std::uint32_t place, std::uint32_t bytes, std::uint64_t offset_ns, std::uint32_t file,
             bool notify) noexcept;
    /// Lets the kernel take the records planned up to `until_ns` (untimed runs: all). Returns how many are left.
    std::uint64_t publish(std::uint64_t until_ns) noexcept;
    /// UTC of the first frame that was put and not published; 0 when there is none.
    std::uint64_t next_planned_ns() const noexcept
    {
        return published_ < put_ ? remarks_[published_ % options_.records].planned_ns : 0;
    }
    /// Untimed: lets the kernel go round the records put so far until it has sent `frames`.
    void publish_laps(std::uint64_t frames) noexcept;
    /// No record will follow.
    void close() noexcept;
    /// The kernel takes no more records.
    void end() noexcept;
    /// Takes back the room of frames that were sent, the oldest first, and shows each remark to `account`.
    template <class Account>
    void reclaim(Account&& account);
    /// Shows the remarks of frames that were put and not sent to `show`, the oldest first. After flush() and reclaim().
    template <class Show>
    void for_each_unsent(Show&& show) const;
    /// Untimed laps: frames are never taken back.
    void stay_in_place() noexcept { laps_ = true; }

    /// The remark of a notification in a timed run; nothing when it has been given up by nothing_pending().
    std::optional<remark> notified(std::uint32_t position) noexcept;
    /// Everything sent has been notified, or never will be.
    void nothing_pending(std::uint64_t sent) noexcept;

    std::uint64_t put_count() const noexcept { return put_; }
    std::uint64_t taken() const noexcept { return weftio_load_acquire_sys_u64(&feed_->taken); }
    const eth_txq& queue() const noexcept { return queue_; }
    bool kernel_alive() const noexcept { return kernel_.alive(); }
    /// Ends the kernel and flushes what has not been handed to the port. @throws weftio::error as eth_txq::reset
    void flush();
    /// Waits for the kernel to end by itself. @throws weftio::error errc::device_error
    bool wait_for_kernel(std::chrono::nanoseconds bound) { return kernel_.wait_for(bound); }

 private:
    device device_;
    conveyor_options options_;
    eth_txq queue_;
    memory arena_memory_, record_memory_, feed_memory_;
    memory_region arena_region_;
    std::uint8_t* arena_;
    replay_record* records_;
    replay_feed* feed_;
    std::vector<remark> remarks_;
    std::uint64_t anchor_ns_ = 0, last_planned_ns_ = 0;
    std::uint64_t arena_begin_ = 0, arena_end_ = 0, reserved_at_ = 0; ///< free-running, in units of 64 bytes
    std::uint64_t put_ = 0, published_ = 0, reclaimed_ = 0;
    std::uint32_t next_entry_ = 0;
    bool laps_ = false;
    std::atomic<std::uint64_t> notified_{0};
    running_kernel kernel_; ///< ends before what it uses
};

template <class Account>
void conveyor::reclaim(Account&& account)
{
    std::uint64_t sent = laps_ ? 0 : queue_.counters().sent;
    for (; reclaimed_ < sent; ++reclaimed_) {
        const remark& done = remarks_[reclaimed_ % remarks_.size()];
        arena_begin_ = done.arena_end;
        account(done);
    }
}

template <class Show>
void conveyor::for_each_unsent(Show&& show) const
{
    for (std::uint64_t at = reclaimed_; at < put_ && !laps_; ++at)
        show(remarks_[at % remarks_.size()]);
}

} // namespace weftio::replay
