// The send ring of a queue pair, as the requester reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/counter.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/rdma/rdma_entry.hpp"
#include "nic/soft/work/work_queue.hpp"
#include "roce/send_entries.hpp"

namespace weftio::nic::soft {

/// Copies of entries, shared by all queue pairs of an engine: only one of them has a turn at a time.
struct entry_copies {
    const void* owner = nullptr;  ///< the queue pair that has read last
    entry read;                   ///< the entry that was read last
    std::uint32_t first_data = 1; ///< index of the first data segment of `read`
    entry answered;               ///< the entry whose answer is being written
};

/// Text of a failure: the memory, if there is one, and the reason.
std::string words_of(const send_event& failure);

/// The send entries of a queue pair. An entry begins when the requester first reads it, and is done when the requester
/// calls end(). Keys and rights are checked at each use of an entry. The class that drives the requester derives from
/// this one.
///
/// In entries, once the queue is idle: enqueued = done + skipped + failed_entries + flushed.
class rdma_work : public work_queue, public roce::send_entries {
 public:
    roce::entry_state read(std::uint32_t index, roce::send_request& request, refusal& refused) override;
    refusal gather(std::uint32_t index, std::uint32_t offset, std::uint32_t bytes, roce::pieces& found) override;
    refusal deliver(std::uint32_t index, std::uint32_t fingerprint, std::uint32_t offset,
                    std::span<const std::uint8_t> bytes) override;
    void end(std::uint32_t index, refusal result, std::uint32_t bytes) override;

    core::counter done, done_bytes, skipped;

 protected:
    /// @param keys    of the NIC; must outlive this
    /// @param copies  of the engine; must outlive this
    rdma_work(const tx_ring& ring, const keys::nic_keys& keys, entry_copies& copies)
        : work_queue(ring), keys_(keys, ring.domain), copies_(copies), ended_(ring.entries.depth)
    {}

    /// Whether this queue pair was the last to call read(), as gather() requires.
    bool has_read_last() const noexcept { return copies_.owner == this; }

    /// Flushes the entries that the requester has not read. Nothing is executed any more.
    void end_work();
    void begin_again_at_zero(const tx_ring& ring) noexcept;
    bool returned(std::uint32_t index) const noexcept override { return ended_[slot(index)] != 0; }

 private:
    void mark_done(std::uint32_t index) noexcept override { ended_[slot(index)] = 1; }
    void count_done(std::uint64_t entries, std::uint64_t bytes) override;
    std::uint32_t slot(std::uint32_t index) const noexcept { return index & (ring_.entries.depth - 1); }
    refusal fetch_at(std::uint32_t index, entry& out) const noexcept;
    void begin(std::uint32_t index, const roce::send_request& request);
    named_bytes refused_memory(std::uint32_t index, refusal reason) const noexcept;
    bool more_behind(std::uint32_t index) const noexcept;
    template <class Do>
    refusal for_each_piece(const entry& from, std::uint32_t first, byte_window window, Do&& what) const;

    const keys::queue_keys keys_;
    entry_copies& copies_;
    std::vector<std::uint8_t> ended_; ///< by slot: 1 once the requester has called end()
};

} // namespace weftio::nic::soft
