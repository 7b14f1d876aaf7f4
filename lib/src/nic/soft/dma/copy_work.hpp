// The send queue of DMA: copies and fills, which the CPU does on the spot, or a device's copy engine meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/counter.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/work/copy_lane.hpp"
#include "nic/soft/work/work_queue.hpp"

namespace weftio::nic::soft {

/// One entry of it, checked.
struct copy_request {
    std::uint64_t bytes = 0;
    std::byte* to = nullptr;
    const std::byte* from = nullptr; ///< nullptr: a fill
    std::uint32_t pattern = 0;       ///< of a fill, in memory order
    copy_lane* lane = nullptr;       ///< whose device copies; nullptr: the CPU sees both ends, and copies
    bool within = false;             ///< the device's own memory is all there is to it: nothing crosses a bus
    keys::held_key to_by{}, from_by{};
};

/// Reads an entry and finds its memory. Returns why it cannot be executed, or refusal::none.
refusal read_copy(const entry& entry, const keys::queue_keys& keys, const copy_lanes& lanes,
                  copy_request& out) noexcept;

/// Entries are executed in order. Those of one lane follow each other without waiting, as the lane keeps their order;
/// what another lane or the CPU copies waits until they have landed.
class copy_work final : public work_queue {
 public:
    /// A turn of so many entries copies so many times as many bytes at most, in long copies too, so that a queue with
    /// long copies does not hold up its neighbors: 128 KiB in one of 64 where the CPU copies, and 16 MiB by a lane. What
    /// stays within a device counts for less: it goes 20 to 40 times as fast as over the bus, and a part of 16 MiB takes
    /// as long as two starts of a copy.
    static constexpr std::uint64_t bytes_of_an_entry = 2048, bytes_by_lane = 256 * 1024, bytes_within_per_byte = 16;

    /// @param lanes  of the engine; must outlive this
    copy_work(const tx_ring& ring, const keys::nic_keys& keys, const copy_lanes& lanes)
        : work_queue(ring), keys_(keys, ring.domain), lanes_(lanes), batches_(ring.entries.depth)
    {}

    unsigned turn(std::uint32_t most) override;
    /// What has not been copied is flushed, the copy under way too. What lanes have begun they end.
    void stop();
    /// Starts again in a ring that has been made anew. @pre stop(), and nothing waits_for_others()
    void restart(const tx_ring& ring) noexcept;

    /// enqueued = copied + skipped + failed + flushed, once the queue is idle; all of them entries.
    core::counter copied, copied_bytes, skipped;

 private:
    /// What is left of a turn.
    struct budget {
        std::uint64_t bytes, bytes_by_lane;
    };

    bool returned(std::uint32_t index) const noexcept override;
    void settle(std::uint32_t index) noexcept override { batch_of(index) = 0; }
    void count_done(std::uint64_t entries, std::uint64_t bytes) override;
    bool execute(budget& left);
    bool begin();
    bool still_may();
    bool has_way(const budget& left);
    void carry_on(budget& left);
    void lose_memory();
    void finish(bool copy);
    void let_go_of_part(std::uint32_t index) noexcept;
    void look_after_lane();
    void lose_lane();
    std::uint64_t& batch_of(std::uint32_t index) noexcept { return batches_[index & (ring_.entries.depth - 1)]; }

    const keys::queue_keys keys_;
    const copy_lanes& lanes_;
    entry entry_; ///< the one at next_, while it is under way
    copy_request request_;
    std::uint64_t done_ = 0; ///< bytes of it that were copied, or begun by a lane
    bool under_way_ = false;
    std::vector<std::uint64_t> batches_; ///< by slot: of lane_, that holds the last part of the entry; 0: it is done
    copy_lane* lane_ = nullptr;          ///< that has all that is handed over and not completed
    std::uint64_t last_batch_ = 0;       ///< of it, with something of this queue
};

} // namespace weftio::nic::soft
