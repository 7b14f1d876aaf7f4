// Where receive entries come from: a ring that a kernel fills.
#pragma once

#include <cstdint>

#include "nic/soft/rdma/pair_rings.hpp"
#include "nic/soft/work/entry.hpp"
#include "roce/receive_entries.hpp"

namespace weftio::nic::soft {

/// A receive entry that a message fills.
struct receive_entry {
    std::uint32_t index = 0;
    ring_segments segments; ///< pointers; read again for each packet, because it does not change until it is completed
};

/// The posted entries of a ring, in order. Knows neither who receives a message nor who completes it. One engine drives
/// it.
class posted_receives {
 public:
    explicit posted_receives(const rdma_rx_ring& ring) noexcept : ring_(ring) {}

    /// Takes the oldest posted entry. @return none: no entry is posted; refused: see record_refused()
    roce::taken take(receive_entry& out) noexcept;
    /// The entry that was taken last is the oldest posted one again.
    void give_back() noexcept { --taken_; }
    /// Starts again with another ring, at entry 0.
    void restart(const rdma_rx_ring& ring) noexcept;
    const rdma_rx_ring& ring() const noexcept { return ring_; }
    /// Entries that the doorbell record has posted and that are not taken yet, at most the depth of the ring.
    std::uint32_t waiting() const noexcept;
    /// Whether the doorbell record has posted more entries than the ring holds. Nothing more is taken until restart().
    bool record_refused() const noexcept { return refused_; }

 private:
    void read_doorbell_record() noexcept;

    rdma_rx_ring ring_;
    std::uint32_t posted_ = 0; ///< index after the last entry posted by the doorbell record
    std::uint32_t taken_ = 0;  ///< index of the next entry to take
    bool refused_ = false;
};

} // namespace weftio::nic::soft
