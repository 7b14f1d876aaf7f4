// Carries frames from the host to the NIC: an arena of frames, a ring of records, and a kernel that turns records into
// entries.
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
    std::uint32_t entries = 16384; ///< entries of the send queue
    std::uint32_t lanes = 1;       ///< lanes of the kernel's block
    bool timed = true;             ///< frames wait for their times
};

/// Carries frames to a port in order. Neither allocates nor locks while it runs.
///
/// - Threads: one feeds (reserve() to close(), reclaim()); the one that reads notifications calls notified(); the rest
///   is called before and after.
class conveyor {
 public:
    /// Data of a frame, kept until the frame has been accounted for.
    struct remark {
        std::uint64_t planned_ns = 0; ///< UTC; 0 in untimed runs
        std::uint32_t file = 0;
        std::uint32_t bytes = 0;
        std::uint32_t entry = 0; ///< position of its send entry
        std::uint64_t arena_end = 0;
    };

    /// @throws weftio::error what eth_txq, memory_region and device::allocate throw
    conveyor(const port& port, const device& device, const conveyor_options& options);

    /// Starts the kernel and waits until it runs. @throws weftio::error what device::launch throws
    void start();
    /// Sets the UTC of offset 0. Call it before the first put().
    void set_anchor(std::uint64_t utc_ns) noexcept { anchor_ns_ = utc_ns; }
    std::uint64_t anchor_ns() const noexcept { return anchor_ns_; }

    /// Reserves room for a frame of up to `bytes`; nullptr if none is free. Never blocks.
    std::uint8_t* reserve(std::uint32_t bytes) noexcept;
    /// Keeps the frame written to the last reserved room. Returns its place.
    std::uint32_t keep(std::uint32_t bytes) noexcept;
    /// Whether another record fits.
    bool has_record_room() const noexcept;
    /// Appends a record for the frame at `place`. The kernel takes it only after publish(). @pre has_record_room()
    void put(std::uint32_t place, std::uint32_t bytes, std::uint64_t offset_ns, std::uint32_t file,
             bool notify) noexcept;
    /// Lets the kernel take the records planned up to `until_ns` (untimed runs: all). Returns how many remain.
    std::uint64_t publish(std::uint64_t until_ns) noexcept;
    /// UTC of the first frame put but not published; 0 if there is none.
    std::uint64_t next_planned_ns() const noexcept
    {
        return published_ < put_ ? remarks_[published_ % options_.records].planned_ns : 0;
    }
    /// Untimed runs: lets the kernel repeat the records put so far until it has sent `frames`.
    void publish_laps(std::uint64_t frames) noexcept;
    /// Tells the kernel that no record will follow.
    void close() noexcept;
    /// Makes the kernel take no more records.
    void end() noexcept;
    /// Frees the room of sent frames, the oldest first, and passes each remark to `account`.
    template <class Account>
    void reclaim(Account&& account);
    /// Passes the remarks of frames put but not sent to `show`, the oldest first. Call it after flush() and reclaim().
    template <class Show>
    void for_each_unsent(Show&& show) const;
    /// Untimed laps: frames are repeated, so their room is never freed.
    void stay_in_place() noexcept { laps_ = true; }

    /// The remark for a notification in a timed run; nothing after nothing_pending() has given it up.
    std::optional<remark> notified(std::uint32_t position) noexcept;
    /// Tells that all frames sent have been notified or never will be.
    void nothing_pending(std::uint64_t sent) noexcept;

    std::uint64_t put_count() const noexcept { return put_; }
    std::uint64_t taken() const noexcept { return weftio_load_acquire_sys_u64(&feed_->taken); }
    const eth_txq& queue() const noexcept { return queue_; }
    bool kernel_alive() const noexcept { return kernel_.alive(); }
    /// Ends the kernel and flushes what has not been handed to the port. @throws weftio::error what eth_txq::reset
    /// throws
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
    running_kernel kernel_; ///< last member: ends before the memory that it uses
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
