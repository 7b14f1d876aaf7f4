// A queue pair of any service: its rings, its state, and what the rest of the NIC needs of it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "keys/held_windows.hpp"
#include "keys/key_table.hpp"
#include "nic/rdma_backend.hpp"
#include "nic/soft/rdma/pair_commons.hpp"
#include "nic/soft/rdma/rdma_receives.hpp"
#include "nic/soft/rdma/rdma_sends.hpp"
#include "nic/soft/rdma/refusal_counts.hpp"
#include "nic/soft/rdma/responder_failures.hpp"
#include "nic/soft/rdma/roce_directory.hpp"
#include "nic/soft/rdma/staged_pair.hpp"
#include "nic/soft/work/turn_taker.hpp"
#include "weftio/rdma_dump.hpp"

namespace weftio::nic::soft {

/// The states are those of nic::rdma_queue. Called by the engine's thread, in a turn or in a change between two turns,
/// unless a comment says otherwise.
class any_pair : public turn_taker, public roce_receiver {
 public:
    /// Most packets that one turn sends: so many answers, and so many requests.
    static constexpr std::uint32_t packets_of_a_turn = 64;

    /// See nic::rdma_queue. @param rings  the present ones
    virtual void modify(rdma_state to, const rdma_connection& how, const pair_rings& rings) = 0;
    rdma_state state() const noexcept
    {
        return failed() && state_ != rdma_state::send_queue_error ? rdma_state::error : state_;
    }
    /// Whether entries that began before SQD are still in flight.
    virtual bool draining() const noexcept = 0;
    /// Ends all communication without notifying a peer. Flushes all entries.
    virtual void stop() = 0;
    /// As stop(), but reports nothing in completion queues.
    void stop_silently();
    /// Starts again with fresh rings, in INIT. @pre stop()
    virtual void restart(const pair_rings& rings) = 0;
    virtual rdma_counters counters() const noexcept = 0;
    virtual rdma_dump dump() = 0;
    /// See nic::rdma_queue.
    std::uint32_t windows() const noexcept { return held_ ? held_->count() : 0; }
    /// Any thread.
    bool failed() const noexcept { return sends_.failed(); }
    send_events& events() noexcept { return sends_.events(); }
    /// Why requests of peers have ended the communication. One reader thread at a time.
    responder_failures& failures() noexcept { return failures_; }
    /// Whether it has failed since the last call.
    bool take_failure() noexcept { return std::exchange(newly_failed_, false); }

    void fall_asleep() noexcept override { staged_.rest(); }
    bool waits_for_others() const noexcept override { return sends_.waits_for_others(); }
    watched_word wakes_by() const noexcept override { return sends_.wakes_by(); }
    const tx_ring& ring() const noexcept override { return sends_.ring(); }
    core::counter turns; ///< turns it has had

 protected:
    any_pair(const pair_rings& rings, rdma_service service, const keys::nic_keys& keys, pair_commons& commons);

    std::uint32_t number() const noexcept { return sends_.ring().entries.queue; }
    void rest(const pair_rings& rings);
    bool has_overrun() const noexcept;
    void flush_both();
    void settle();
    /// Whether something waits for copies, or for a turn that ends the queue pair because of one.
    bool waits_for_copies() const noexcept
    {
        return staged_.used() &&
               (staged_.pending() || receives_.waits_for_copies() || (staged_.failed() && !sends_.failed()));
    }
    void restart_rings(const pair_rings& rings) noexcept;
    void report_failed_receive(const roce::refused_request& by) noexcept;
    void count_rings(rdma_counters& into) const noexcept;
    void dump_rings(rdma_dump& into) const;

    const rdma_service service_;
    const keys::window_user as_;                     ///< whose windows of type 2 its peer may access
    const std::unique_ptr<keys::held_windows> held_; ///< nullptr: its windows are of type 2B
    staged_pair staged_;
    rdma_sends sends_;
    rdma_receives receives_;
    responder_failures failures_;
    pair_commons& commons_;
    rdma_state state_ = rdma_state::init; ///< a failed queue pair is in ERR: see state()
    bool newly_failed_ = false;
    refusal_counts refused_by_;

 private:
    void dump_error(rdma_dump& into) const;
};

} // namespace weftio::nic::soft
