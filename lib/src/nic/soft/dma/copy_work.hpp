// The send queue of DMA: copies and fills, done by the CPU at once or by a device's copy engine in the background.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/counter.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/work/copy_stream.hpp"
#include "nic/soft/work/work_queue.hpp"

namespace weftio::nic::soft {

/// One checked entry.
struct copy_request {
    std::uint64_t bytes = 0;
    std::byte* to = nullptr;
    const std::byte* from = nullptr; ///< nullptr: a fill
    std::uint32_t pattern = 0;       ///< for a fill, in memory order
    copy_stream* stream = nullptr;   ///< the copy engine to use; nullptr: the CPU can access both ends and copies
    bool within = false;             ///< only the device's own memory is used: nothing crosses a bus
    keys::held_key to_by{}, from_by{};
};

/// Decodes an entry and finds its memory. Returns why it cannot be executed, or refusal::none.
refusal read_copy(const entry& entry, const keys::queue_keys& keys, const copy_streams& streams,
                  copy_request& out) noexcept;

/// Entries are executed in order. Copies by one copy engine follow each other without waiting, because it keeps their
/// order. Copies by another copy engine or by the CPU wait until those are complete.
class copy_work final : public work_queue {
 public:
    /// A turn with a budget of N entries copies at most N x 2 KiB (CPU) or N x 256 KiB (copy engine), also within one
    /// long copy, so that a queue with long copies does not delay its neighbors. For N = 64 these are 128 KiB and 16
    /// MiB. Copies within a device count 1/16: they are 20 to 40 times as fast as over the bus, and 16 MiB take as long
    /// as starting two copies.
    static constexpr std::uint64_t bytes_of_an_entry = 2048, bytes_by_stream = 256 * 1024, bytes_within_per_byte = 16;

    /// @param streams  copy engines of the engine; must outlive this
    copy_work(const tx_ring& ring, const keys::nic_keys& keys, const copy_streams& streams)
        : work_queue(ring), keys_(keys, ring.domain), streams_(streams), batches_(ring.entries.depth)
    {}

    unsigned turn(std::uint32_t most) override;
    /// Flushes what has not been copied, including the copy in progress. Copy engines finish what they have started.
    void stop();
    /// Starts again with a fresh ring. @pre stop(), and not waits_for_others()
    void restart(const tx_ring& ring) noexcept;

    /// In entries, once the queue is idle: enqueued = copied + skipped + failed + flushed.
    core::counter copied, copied_bytes, skipped;

 private:
    /// What may still be copied in this turn.
    struct budget {
        std::uint64_t bytes, bytes_by_stream;
    };

    bool returned(std::uint32_t index) const noexcept override;
    void mark_done(std::uint32_t index) noexcept override { batch_of(index) = 0; }
    void count_done(std::uint64_t entries, std::uint64_t bytes) override;
    bool execute(budget& left);
    bool begin();
    bool still_may();
    bool has_way(const budget& left);
    void carry_on(budget& left);
    void lose_memory();
    void finish(bool copy);
    void let_go_of_part(std::uint32_t index) noexcept;
    void check_stream();
    void fail_stream();
    std::uint64_t& batch_of(std::uint32_t index) noexcept { return batches_[index & (ring_.entries.depth - 1)]; }

    const keys::queue_keys keys_;
    const copy_streams& streams_;
    entry entry_; ///< the entry at next_, while in progress
    copy_request request_;
    std::uint64_t done_ = 0; ///< bytes of it that are copied, or started by a copy engine
    bool under_way_ = false;
    std::vector<std::uint64_t> batches_; ///< by slot: batch of stream_ with the entry's last part; 0: the entry is done
    copy_stream* stream_ = nullptr;      ///< copy engine of all entries that are handed over and not completed
    std::uint64_t last_batch_ = 0;       ///< the last batch of stream_ with copies of this queue
};

} // namespace weftio::nic::soft
