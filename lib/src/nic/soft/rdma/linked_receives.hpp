// Receive entries that several queue pairs share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/counter.hpp"
#include "nic/soft/rdma/posted_receives.hpp"
#include "weftio/access.hpp"

namespace weftio::nic::soft {

/// CPU addresses of nic::shared_receive_ring.
struct shared_rx_ring {
    const std::uint32_t* words = nullptr;
    const std::uint32_t* dbrec = nullptr;
    std::uint32_t depth = 0, segments = 2;
    protection_domain domain{};
};

/// The posted entries of a shared receive queue: a linked list through the first segments of the entries, which begins
/// at entry 0. An entry that has been taken is complete when the program has read its completion, in any order; the
/// program then appends it to the list. One engine drives it, as it drives all its queue pairs; any thread may read the
/// counter.
class linked_receives {
 public:
    /// @throws std::bad_alloc
    explicit linked_receives(const shared_rx_ring& ring) : ring_(ring) { returned_.reserve(ring.depth); }

    /// As posted_receives::take(). @return refused: see is_broken()
    roce::taken take(receive_entry& out) noexcept;
    /// An entry that take() gave is the next one again.
    void give_back(const receive_entry& entry) noexcept
    {
        if (returned_.size() != ring_.depth) // a program that has posted an entry twice loses it
            returned_.push_back(entry.index);
    }
    /// Entries that are posted and not taken, at most the depth of the ring.
    std::uint32_t waiting() const noexcept;
    /// Whether the doorbell record has posted more entries than the ring holds, or the list has left the ring. Nothing
    /// more is taken.
    bool is_broken() const noexcept { return broken_; }
    /// Counts in `limit_reached` when fewer than `limit` entries wait: once, then the limit is 0, which is none.
    void set_limit(std::uint32_t limit) noexcept
    {
        limit_ = limit;
        check_limit();
    }
    std::uint32_t limit() const noexcept { return limit_; }
    const shared_rx_ring& ring() const noexcept { return ring_; }

    core::counter limit_reached;

 private:
    bool find_next(std::uint32_t& index) noexcept;
    void read_doorbell_record() noexcept;
    void check_limit() noexcept;

    const shared_rx_ring ring_;
    std::uint32_t posted_ = 0;            ///< total of the doorbell record
    std::uint32_t taken_ = 0;             ///< total, without those in `returned_`
    std::uint32_t next_ = 0;              ///< the entry of the list that is taken next
    std::vector<std::uint32_t> returned_; ///< entries that are taken before `next_`, the last one first
    std::uint32_t limit_ = 0;
    bool broken_ = false;
};

} // namespace weftio::nic::soft
