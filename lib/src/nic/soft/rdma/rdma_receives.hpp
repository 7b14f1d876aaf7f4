// What a queue pair receives: the entry that a message fills now, and its completion.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/counter.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/rdma/linked_receives.hpp"
#include "nic/soft/rdma/posted_receives.hpp"
#include "nic/soft/rdma/rdma_entry.hpp"
#include "roce/receive_entries.hpp"

namespace weftio::nic::soft {

/// Takes entries from its own ring, or from a shared receive queue, and completes them in that order. Keys and rights
/// are checked at every use. One engine drives it; any thread may read the counters.
class rdma_receives final : public roce::receive_entries {
 public:
    /// @param keys    of the NIC; must outlive this, as must `staged`
    /// @param staged  of the queue pair; nullptr: memory that the CPU cannot access is refused
    rdma_receives(const rdma_rx_ring& ring, std::uint32_t queue, const keys::nic_keys& keys, protection_domain domain,
                  staged_pair* staged = nullptr)
        : posted_(ring), shared_(ring.shared), queue_(queue), keys_(keys, shared_ ? shared_->ring().domain : domain),
          staged_(staged)
    {}

    roce::taken take() override;
    refusal deliver(std::uint32_t offset, std::span<const std::uint8_t> bytes) override;
    /// If copies are under way, the completion comes with them: see settle().
    void complete(const roce::receive_completion& completion) override;
    void give_back() override;

    /// Completes the entries whose copies are made. Those whose copies have failed complete with the reason.
    void settle();
    /// Whether entries wait for copies.
    bool waits_for_copies() const noexcept { return !waiting_.empty(); }
    /// Completes all posted entries as flushed, but not shared ones. Returns how many. @pre no entry is current
    std::uint32_t flush();
    /// Starts again with another ring, at entry 0.
    void restart(const rdma_rx_ring& ring) noexcept;
    /// Reports nothing in a completion queue until restart(), nor what waits for copies.
    void be_silent() noexcept
    {
        silent_ = true;
        drop_waiting();
    }
    /// Whether its completion queue has overrun.
    bool overran() const noexcept;
    /// Entries that are posted and not taken.
    std::uint32_t waiting() const noexcept { return shared_ ? shared_->waiting() : posted_.waiting(); }
    /// Why an entry or the doorbell record has failed; none: neither has.
    refusal failure() const noexcept { return failure_; }
    /// Whether the doorbell record has posted more entries than the ring holds, seen when one was to be taken.
    bool record_refused() const noexcept { return record_refused_; }
    /// Index of the entry that has failed, if one has.
    std::optional<std::uint32_t> failed_entry() const noexcept { return failed_entry_; }

    /// received = filled + failed + flushed.
    core::counter received, filled, failed, flushed;

 private:
    /// A completion that waits for copies.
    struct waiting_completion {
        roce::receive_completion completion;
        receive_entry entry;
        bool has_reservation;
        std::uint64_t ticket;
    };

    void complete_now(const roce::receive_completion& completion);
    void drop_waiting() noexcept;
    void publish(const roce::receive_completion& completion, std::uint64_t now_ns);
    bool may_complete() noexcept;
    void return_current() noexcept;
    /// The completion queue; nullptr: entries complete in memory of the ring.
    completion_ring* target() const noexcept { return posted_.ring().target.ring; }

    posted_receives posted_; ///< its own
    linked_receives* const shared_;
    receive_entry current_{};
    const std::uint32_t queue_;
    const keys::queue_keys keys_;
    staged_pair* const staged_;
    std::vector<waiting_completion> waiting_; ///< the oldest first
    refusal failure_ = refusal::none;
    std::optional<std::uint32_t> failed_entry_;
    bool has_reservation_ = false; ///< a completion queue entry is reserved for the current entry
    bool silent_ = false, record_refused_ = false;
};

} // namespace weftio::nic::soft
