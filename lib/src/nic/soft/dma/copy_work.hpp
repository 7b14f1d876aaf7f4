// The send queue of DMA: copies and fills, which the CPU does on the spot.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/counter.hpp"
#include "nic/soft/send/queue_keys.hpp"
#include "nic/soft/send/work_queue.hpp"

namespace weftio::nic {

/// One entry of it, checked.
struct copy_request {
    std::uint64_t bytes = 0;
    std::byte* to = nullptr;
    const std::byte* from = nullptr; ///< nullptr: a fill
    std::uint32_t pattern = 0;       ///< of a fill, in memory order
};

/// Reads an entry and finds its memory. Returns why it cannot be executed, or refusal::none.
refusal read_copy(const entry& entry, const queue_keys& keys, copy_request& out) noexcept;

class copy_work final : public work_queue {
 public:
    /// A turn of so many entries copies so many times as many bytes at most, in long copies too: 128 KiB in one of 64,
    /// so that a queue with long copies does not hold up its neighbors.
    static constexpr std::uint64_t bytes_of_an_entry = 2048;

    copy_work(const tx_ring& ring, const nic_keys& keys) : work_queue(ring), keys_(keys, ring.domain) {}

    unsigned turn(std::uint32_t most) override;
    /// What has not been copied is flushed, the copy under way too.
    void stop();
    /// Starts again in a ring that has been made anew. @pre stop()
    void restart(const tx_ring& ring) noexcept;

    /// enqueued = copied + skipped + failed + flushed, once the queue is idle; all of them entries.
    detail::counter copied, copied_bytes, skipped;

 private:
    bool returned(std::uint32_t) const noexcept override { return true; }
    void count_done(std::uint64_t entries, std::uint64_t bytes) override;
    bool execute(std::uint64_t& budget);
    bool begin();
    void carry_on(std::uint64_t& budget) noexcept;
    void finish(bool copy);

    const queue_keys keys_;
    entry entry_; ///< the one at next_, while it is under way
    copy_request request_;
    std::uint64_t done_ = 0; ///< bytes of it
    bool under_way_ = false;
    std::uint64_t removals_ = 0; ///< of keys, when its memory was found
};

} // namespace weftio::nic
