// The send ring of a queue pair, as the requester reads it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/counter.hpp"
#include "keys/held_windows.hpp"
#include "keys/queue_keys.hpp"
#include "nic/soft/engine/turn_rounds.hpp"
#include "nic/soft/rdma/rdma_entry.hpp"
#include "nic/soft/work/work_ring.hpp"
#include "roce/send_entries.hpp"

namespace weftio::nic::soft {

/// Text of a failure: the memory, if there is one, and the reason.
std::string words_of(const send_event& failure);

/// How a queue pair binds windows.
struct window_rules {
    keys::window_user as;               ///< who binds them
    keys::held_windows* held = nullptr; ///< counts those of type 2A; must outlive the queue pair
    bool strict = true;
};

/// The send entries of a queue pair. An entry begins when the requester reads it, and is done when the requester calls
/// end(). Keys and rights are checked at each use of an entry.
///
/// In entries, once the queue is idle: enqueued = done + skipped + failed_entries + flushed.
class rdma_sends final : public work_ring, public roce::send_entries {
 public:
    /// @param service  with datagram, entries have a datagram segment
    /// @param keys     of the NIC; must outlive this
    /// @param rounds   of the port; must outlive this, as must `staged`
    rdma_sends(const tx_ring& ring, rdma_service service, const keys::nic_keys& keys, const window_rules& windows,
               turn_rounds& rounds, staged_pair& staged)
        : work_ring(ring), service_(service), nic_(keys), keys_(keys, ring.domain), windows_(windows), rounds_(rounds),
          staged_(staged), ended_(ring.entries.depth)
    {}

    bool read(std::uint32_t index, roce::message& out) override;
    refusal gather(const roce::message& of, std::uint32_t offset, std::uint32_t bytes, roce::pieces& found) override;
    refusal scatter(const roce::message& of, std::uint32_t offset, std::span<const std::uint8_t> bytes) override;
    refusal execute(const roce::message& of) override;
    bool in_force() override;
    /// Whether other engines may still use the old key of a window that an entry has changed.
    bool waits_for_engines() const noexcept { return round_ != 0; }
    /// If copies are under way, the entry ends with them: see settle().
    void end(const roce::message& done, refusal result) override;
    /// Ends the entries whose copies are made, and fails those whose copies have failed.
    void settle();

    using work_ring::completes_each;
    using work_ring::overran;
    using work_ring::overrun;
    using work_ring::read_doorbell_record;
    std::uint32_t committed() const noexcept { return submitted_; }
    /// Index of the next entry to read.
    std::uint32_t next() const noexcept { return next_; }
    std::uint32_t completed() const noexcept { return completed_; }
    /// Reports nothing in a completion queue until it begins again. What waits for copies ends.
    void be_silent() noexcept
    {
        work_ring::be_silent();
        for (const waiting_entry& each : waiting_) {
            mark_done(each.index);
            skipped.add(!executed(each.index).counts);
        }
        waiting_.clear();
    }
    /// Whether the oldest entry in flight has ended.
    bool has_ended() const noexcept { return completed_ != handed_ && returned(completed_); }
    /// Publishes completions of entries that have ended, and of a failure without an entry.
    unsigned publish() { return completed_ != handed_ || has_failure_to_publish() ? complete() : 0; }
    /// Puts the ring in error.
    void break_off() noexcept { failed_.store(true, std::memory_order_relaxed); }
    /// Leaves the error state, in which a failed entry has put the ring.
    void mend() noexcept { failed_.store(false, std::memory_order_relaxed); }
    /// Puts the ring in error, and flushes the entries that the requester has not read.
    void flush_unread();
    /// The next completion reports this failure, which no entry has caused.
    void report(refusal why) noexcept { failure_to_publish_ = why; }
    /// Starts again in a fresh ring, at entry 0.
    void begin_again_at_zero(const tx_ring& ring) noexcept;

    core::counter done, done_bytes, skipped;

 private:
    bool returned(std::uint32_t index) const noexcept override { return ended_[slot(index)] != 0; }
    void mark_done(std::uint32_t index) noexcept override { ended_[slot(index)] = 1; }
    void count_done(std::uint64_t entries, std::uint64_t bytes) override;
    std::uint32_t slot(std::uint32_t index) const noexcept { return index & (ring_.entries.depth - 1); }
    /// An entry that has succeeded, but for copies.
    struct waiting_entry {
        std::uint32_t index;
        std::uint64_t ticket;
    };

    refusal read_and_drop(const roce::message& of);
    refusal gather_staged(const roce::message& of, const byte_window& window, roce::pieces& found);
    roce::wanted_bytes part_of(const roce::message& of, const byte_window& window,
                               const local_piece& piece) const noexcept;
    bool wait_for_copies(std::uint32_t index);
    void fail_settled(const waiting_entry& one, refusal why);
    data_segments data_of(const roce::message& of) const noexcept;
    named_bytes refused_memory(const roce::message& failed, refusal reason) const noexcept;
    bool more_behind(std::uint32_t index) const noexcept;
    void count_window(bool freed) noexcept;

    const rdma_service service_;
    const keys::nic_keys& nic_;
    const keys::queue_keys keys_;
    const window_rules windows_;
    turn_rounds& rounds_;
    staged_pair& staged_;
    std::vector<waiting_entry> waiting_; ///< the oldest first
    std::uint64_t round_ = 0;            ///< after which other engines use no old key of a window; 0: they use none
    std::vector<std::uint8_t> ended_;    ///< by slot: 1 once the requester has called end()
};

} // namespace weftio::nic::soft
