// The copy engine of a device, shared by the queues of one DMA engine or of one sender.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "devices/backend.hpp"
#include "nic/soft/work/by_device.hpp"

namespace weftio::nic::soft {

/// Copies between the device's memory and any other memory, in order. The copies that one turn starts are one batch.
/// Belongs to one engine.
class copy_stream {
 public:
    explicit copy_stream(std::shared_ptr<devices::copy_queue> copies) : copies_(std::move(copies)) {}

    void copy(std::byte* to, const std::byte* from, std::size_t bytes) noexcept
    {
        copy(to, from, {.bytes = bytes, .count = 1, .to_stride = bytes, .from_stride = bytes});
    }
    void copy(std::byte* to, const std::byte* from, const devices::copy_queue::rows& rows) noexcept
    {
        copies_->copy(to, from, rows);
        begun_ = true;
    }
    void fill(std::byte* to, std::uint32_t pattern, std::size_t bytes) noexcept
    {
        copies_->fill(to, pattern, bytes);
        begun_ = true;
    }
    /// The number of the batch that copies are added to now; the first is 1.
    std::uint64_t batch() const noexcept { return ended() + 1; }
    void end_batch() noexcept
    {
        if (!std::exchange(begun_, false))
            return;
        const std::uint64_t ended = this->ended() + 1;
        ended_.store(ended, std::memory_order_release); // first: is_over() must not see more completed than ended
        copies_->mark(static_cast<std::uint32_t>(ended));
    }
    /// Whether all copies of a batch are complete and visible.
    bool completed(std::uint64_t batch) noexcept
    {
        completed_ += copies_->completed() - static_cast<std::uint32_t>(completed_);
        return batch <= completed_;
    }
    /// Whether enough batches are in flight: later copies should wait and form a larger batch.
    bool full() noexcept { return ended() >= most_under_way && !completed(ended() + 1 - most_under_way); }
    bool failed() const noexcept { return copies_->failed(); }
    /// Batches that have ended.
    std::uint64_t ended() const noexcept { return ended_.load(std::memory_order_relaxed); }
    /// Whether a batch that has ended is complete, or never will be. Any thread, without a turn.
    bool is_over(std::uint64_t batch) const noexcept
    {
        // Read first: as many batches as were complete then have ended when ended_ is read.
        const std::uint32_t completed = copies_->completed();
        const std::uint64_t ended = ended_.load(std::memory_order_acquire);
        return batch <= ended - (static_cast<std::uint32_t>(ended) - completed) || copies_->failed();
    }

 private:
    static constexpr std::uint64_t most_under_way = 4;

    std::shared_ptr<devices::copy_queue> copies_;
    bool begun_ = false;                  ///< the current batch has copies
    std::atomic<std::uint64_t> ended_{0}; ///< batches; the engine alone changes it
    std::uint64_t completed_ = 0;         ///< batches, as last seen
};

using copy_streams = by_device<copy_stream>;

} // namespace weftio::nic::soft
