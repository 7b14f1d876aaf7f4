// The receive ring of a queue pair, as the responder of its connection fills it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/counter.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/rdma/pair_rings.hpp"
#include "nic/soft/rdma/rdma_entry.hpp"
#include "roce/receive_entries.hpp"

namespace weftio::nic::soft {

/// Entries are taken and completed in order. Keys and rights are checked at every use. One engine drives it; any thread
/// may read the counters.
class rdma_receives final : public roce::receive_entries {
 public:
    /// @param keys  of the NIC; must outlive this
    rdma_receives(const rdma_rx_ring& ring, std::uint32_t queue, const keys::nic_keys& keys, protection_domain domain)
        : ring_(ring), queue_(queue), keys_(keys, domain)
    {}

    roce::taken take() override;
    refusal deliver(std::uint32_t offset, std::span<const std::uint8_t> bytes) override;
    void complete(const roce::receive_completion& completion) override;
    void give_back() override;

    /// Completes all posted entries as flushed. Returns how many. @pre no entry is current
    std::uint32_t flush();
    /// Starts again with another ring, at entry 0.
    void restart(const rdma_rx_ring& ring) noexcept;
    /// Reports nothing in a completion queue until restart().
    void be_silent() noexcept { silent_ = true; }
    /// Whether its completion queue has overrun.
    bool overran() const noexcept;
    /// Entries that the doorbell record has posted and that are not taken yet, at most the depth of the ring.
    std::uint32_t waiting() const noexcept;
    /// Why an entry or the doorbell record has failed; none: neither has.
    refusal failure() const noexcept { return failure_; }
    /// Whether the doorbell record has posted more entries than the ring holds.
    bool record_refused() const noexcept { return failure_ == refusal::wrong_doorbell; }
    /// Index of the entry that has failed, if one has.
    std::optional<std::uint32_t> failed_entry() const noexcept { return failed_entry_; }

    /// received = filled + failed + flushed.
    core::counter received, filled, failed, flushed;

 private:
    void read_doorbell_record() noexcept;
    std::uint32_t slot() const noexcept { return taken_ & (ring_.depth - 1); }
    void publish(const roce::receive_completion& completion, std::uint64_t now_ns);
    bool may_complete() noexcept;

    rdma_rx_ring ring_;
    const std::uint32_t queue_;
    const keys::queue_keys keys_;
    std::uint32_t posted_ = 0; ///< index after the last entry posted by the doorbell record
    std::uint32_t taken_ = 0;  ///< index of the current entry, or of the next one to take
    refusal failure_ = refusal::none;
    std::optional<std::uint32_t> failed_entry_;
    bool has_reservation_ = false; ///< a completion queue entry is reserved for the current entry
    bool silent_ = false;
};

} // namespace weftio::nic::soft
