// What has turns in a work_list.
#pragma once

#include <cstdint>

namespace weftio::nic::soft {

struct tx_ring;

/// A word that others write, in memory order, and its value when last read.
struct watched_word {
    const std::uint32_t* word;
    std::uint32_t seen;
};

/// A queue that executes entries, as the list that gives it turns sees it. One engine owns and drives it.
class turn_taker {
 public:
    turn_taker() noexcept = default;
    turn_taker(const turn_taker&) = delete;
    turn_taker& operator=(const turn_taker&) = delete;
    virtual ~turn_taker() = default;

    /// Executes at most `most` of the committed entries (a queue pair: sends at most that many packets), and completes
    /// those that came back. Returns how much it moved.
    virtual unsigned turn(std::uint32_t most) = 0;
    /// Deadline of the wait that holds the queue, UTC; 0 when no wait holds it, UINT64_MAX when no time ends it.
    virtual std::uint64_t deadline_ns() const noexcept { return 0; }
    /// Whether a wait holds the queue, so that no entry committed from now on is executed before the deadline.
    virtual bool waits_for_time() const noexcept { return false; }
    /// Ends the wait that holds the queue: its deadline has come.
    virtual void let_go() noexcept {}
    /// Whether the queue has no work before its doorbell record moves.
    virtual bool idle() const noexcept = 0;
    /// Whether the queue has no work that a turn could do before its doorbell record moves, its deadline comes or it is
    /// woken. False without a deadline.
    virtual bool only_waits() const noexcept { return false; }
    /// The queue has no turn until it is woken, so it may give back memory that only work in flight needs.
    virtual void fall_asleep() noexcept {}
    /// Whether a driver or a copy engine still holds an entry that was handed over.
    virtual bool waits_for_others() const noexcept = 0;
    /// Whether only a full completion queue keeps the queue from being idle.
    virtual bool is_held() const noexcept = 0;
    /// The word that moves when the queue sleeps and gets work.
    virtual watched_word wakes_by() const noexcept = 0;
    virtual const tx_ring& ring() const noexcept = 0;
};

} // namespace weftio::nic::soft
