// The send queues of an engine: which have a turn, which sleep, which wait for a deadline. No queue waits for another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/engine/deadlines.hpp"
#include "nic/soft/engine/spin.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/work/doorbell_watch.hpp"
#include "nic/soft/work/work_ring.hpp"

namespace weftio::nic::soft {

/// One engine owns a list and drives it, as it does a unit.
class work_list {
 public:
    /// @param first  the lowest number that a queue can have
    explicit work_list(std::uint32_t first = 1) noexcept : first_(first) {}

    /// Doorbell words outside of a page, and records of sleeping queues that no doorbell wakes, polled per turn. Few in
    /// a busy turn, because idle queues must not slow a busy one. More after a turn that moved nothing, because such an
    /// engine may sleep between turns.
    static constexpr std::uint32_t polls_when_busy = 4, polls_when_idle = 64;
    /// Busy turns to a poll of a record of a queue that a doorbell wakes, for commits without a push.
    static constexpr std::uint32_t busy_turns_per_commit_poll = 4;
    /// After this many turns without work a queue sleeps: only its doorbell and its record are polled.
    static constexpr std::uint32_t turns_awake = 256;
    /// A sleeping queue has one turn after this many polls, for work that its doorbell does not show.
    static constexpr std::uint32_t polls_per_wake = 1024;

    /// Send step 2: wakes sleeping queues whose doorbell was rung, within 8 busy turns or 1 idle one. Also polls the
    /// doorbell records of some sleeping queues, and wakes those whose record has moved. For queues with doorbell words
    /// outside of a page, polls the words, and reads the records only after a word was rung.
    void poll_for_work(bool busy) noexcept;
    /// Send step 2: ends the waits whose deadline has come, and gives their queues the first turns, earliest deadline
    /// first. Spins when the next deadline is close, so that nothing delays it.
    void keep_deadlines(bool busy) noexcept;
    /// Send step 2, for queues whose deadlines are not exact to the nanosecond: wakes those whose deadline has come.
    void wake_those_due() noexcept;
    /// Sum of the turns of all queues.
    struct outcome {
        unsigned moved = 0;
        bool waits_for_others = false; ///< see turn_taker::waits_for_others()
    };
    /// Send step 2: gives every queue that is awake a turn of at most `most` entries.
    outcome turn(std::uint32_t most);
    /// Wakes the queue if it sleeps: the next turn() gives it a turn. Does nothing when no queue has the number.
    void wake(std::uint32_t number) noexcept;
    /// Wakes the queues that sleep until a deadline.
    void wake_those_that_wait() noexcept;
    /// The earliest deadline of all queues, UTC; 0 when no queue has one.
    std::uint64_t deadline_ns() const noexcept { return deadlines_.empty() ? 0 : deadlines_.first_ns(); }

    /// Makes room for a queue of that number, so that the other functions allocate nothing.
    /// @param ring  of the queue, for its doorbells
    void reserve(std::uint32_t number, const tx_ring& ring = {});
    /// Adds a queue. @pre reserve(); no queue has that number; it is at least the first
    void put(std::uint32_t number, std::unique_ptr<turn_taker> queue) noexcept;
    /// Removes a queue and returns it.
    std::unique_ptr<turn_taker> take(std::uint32_t number) noexcept;
    /// Wakes the queue, and removes its deadline.
    void rouse(std::uint32_t number) noexcept;
    /// Pauses the queue: until resume() it starts no entry, but continues those that it has started.
    void pause(std::uint32_t number) noexcept { slot_of(number).paused = true; }
    void resume(std::uint32_t number) noexcept { slot_of(number).paused = false; }
    /// All numbers in use are in first() .. last(); find() says which of them are in use.
    std::uint32_t first() const noexcept { return first_; }
    std::uint32_t last() const noexcept { return first_ + queues() - 1; }
    /// How many numbers have been reserved, see reserve().
    std::uint32_t queues() const noexcept { return static_cast<std::uint32_t>(slots_.size()); }
    turn_taker* find(std::uint32_t number) const noexcept
    {
        return has_slot(number) ? slots_[number - first_].queue.get() : nullptr;
    }
    /// The number of queues.
    std::size_t in_use() const noexcept
    {
        return awake_.size() + asleep_.size() + at_bells_.size() + asleep_at_doorbells_;
    }
    bool empty() const noexcept { return in_use() == 0; }

 private:
    static constexpr std::uint32_t nowhere = UINT32_MAX;

    /// What the engine polls for a sleeping queue: one without work, or without work before its deadline.
    struct asleep {
        const std::uint32_t* word; ///< see turn_taker::wakes_by()
        std::uint32_t seen;
        std::uint32_t number;
    };
    /// Doorbell words that several queues share.
    struct shared_doorbell {
        doorbell_words words;
        std::uint32_t queues = 0;       ///< queues with these words
        std::vector<asleep> sleepers{}; ///< those of the queues that sleep until a word is rung
    };
    struct slot {
        std::unique_ptr<turn_taker> queue;
        std::uint32_t asleep = nowhere; ///< index in sleepers_with(); nowhere: it is awake
        bool at_doorbell = false;       ///< it is in the sleepers of its doorbell
        shared_doorbell* rung_by = nullptr;
        page_word bell{};     ///< its word in a doorbell page
        bool watched = false; ///< bells_ watches its word; it is in at_bells_
        bool paused = false;
    };
    struct awake {
        std::uint32_t number;
        std::uint32_t idle_turns;
    };

    void poll_one(const asleep& queue) noexcept;
    void poll_one(const shared_doorbell& at) noexcept;
    void count_poll() noexcept;
    void poll_doorbells(bool all) noexcept;
    void poll_commits(bool busy) noexcept;
    std::vector<asleep>& sleepers_with(const slot& of) noexcept;
    shared_doorbell& doorbell_at(const doorbell_words& words);
    void leave_doorbell(slot& of) noexcept;
    bool rests(awake& each, unsigned moved, bool has_deadline) noexcept;
    void watch(std::uint32_t number, slot& of, const watched_word& record) noexcept;
    void unwatch(std::uint32_t number, slot& of) noexcept;
    void lay_down(std::size_t awake) noexcept;
    void change_first() noexcept;

    /// Also false for numbers below the first, whose difference wraps around.
    bool has_slot(std::uint32_t number) const noexcept { return number - first_ < slots_.size(); }
    slot& slot_of(std::uint32_t number) noexcept { return slots_[number - first_]; }
    void set_deadline(std::uint32_t number, std::uint64_t ns) noexcept { deadlines_.set(number - first_ + 1, ns); }
    std::uint32_t first_due() const noexcept { return deadlines_.first_queue() + first_ - 1; }

    const std::uint32_t first_;
    std::vector<slot> slots_; ///< by number - first_
    std::vector<awake> awake_;
    std::vector<asleep> asleep_, at_bells_;
    std::vector<std::unique_ptr<shared_doorbell>> doorbells_;
    doorbell_watch bells_;
    std::size_t asleep_at_doorbells_ = 0;
    std::uint32_t draw_ = 0;             ///< see change_first()
    std::size_t last_polled_ = 0;        ///< what was polled last: an index in asleep_ followed by doorbells_
    std::size_t last_commit_polled_ = 0; ///< index in at_bells_
    std::uint32_t busy_turns_ = 0;
    std::uint32_t polls_ = 0;
    std::uint32_t last_turned_ = 0; ///< index in slots_, see count_poll()
    deadlines deadlines_;
    spin spin_;
};

} // namespace weftio::nic::soft
