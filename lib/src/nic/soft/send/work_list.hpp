// Send queues side by side, none waiting for another: which have a turn, which sleep, which wait for a deadline.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/engine/deadlines.hpp"
#include "nic/soft/engine/spin.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/send/work_queue.hpp"

namespace weftio::nic {

/// Belongs to one engine, as a unit does.
class work_list {
 public:
    /// Of queues with nothing to do, so many have their doorbell looked at in a turn: 4,096 of them must not make a
    /// busy one slow. More behind a turn that moved nothing, which may be one of an engine that sleeps in between.
    static constexpr std::uint32_t looks_of_a_busy_turn = 4, looks_of_an_idle_turn = 64;
    /// A queue that had nothing to do for so many turns has only its doorbell looked at.
    static constexpr std::uint32_t turns_awake = 256;

    /// Wakes queues whose doorbell has been rung, of some that sleep.
    void look_at_doorbells(bool busy) noexcept;
    /// Queues whose deadline has come have a turn now, the earliest first. Close to one it is waited for on the spot, so
    /// that nothing comes in between.
    void keep_deadlines(bool busy) noexcept;
    /// What the turns of all queues came to.
    struct outcome {
        unsigned moved = 0;
        bool waits_for_others = false; ///< see work_queue
    };
    /// A turn of every queue that is awake, `most` entries each.
    outcome turn(std::uint32_t most);
    /// Sees to it that the next turn is one of this queue too, if there is such a queue.
    void wake(std::uint32_t number) noexcept;
    /// Wakes those that sleep until a deadline.
    void wake_those_that_wait() noexcept;
    /// The earliest deadline that holds a queue; 0 when none does.
    std::uint64_t deadline_ns() const noexcept { return deadlines_.empty() ? 0 : deadlines_.first_ns(); }

    /// Makes room for a queue of that number.
    void reserve(std::uint32_t number);
    /// @pre reserve(); no queue has that number, which is at least 1
    void put(std::uint32_t number, std::unique_ptr<work_queue> queue) noexcept;
    std::unique_ptr<work_queue> take(std::uint32_t number) noexcept;
    /// The queue has a turn next, and no deadline.
    void rouse(std::uint32_t number) noexcept;
    /// The queue executes nothing more until resume(), but goes on with what it has begun.
    void pause(std::uint32_t number) noexcept { places_[number - 1].paused = true; }
    void resume(std::uint32_t number) noexcept { places_[number - 1].paused = false; }
    /// Numbers in use are 1 .. this; find() says which of them are.
    std::uint32_t queues() const noexcept { return static_cast<std::uint32_t>(places_.size()); }
    work_queue* find(std::uint32_t number) const noexcept
    {
        return number <= places_.size() ? places_[number - 1].queue.get() : nullptr;
    }
    /// How many there are.
    std::size_t in_use() const noexcept { return awake_.size() + asleep_.size(); }

 private:
    static constexpr std::uint32_t nowhere = UINT32_MAX;

    struct place {
        std::unique_ptr<work_queue> queue;
        std::uint32_t asleep = nowhere; ///< where in asleep_
        bool paused = false;
    };
    struct awake {
        std::uint32_t number;
        std::uint32_t idle_turns;
    };
    /// All that has to be looked at of a queue with nothing to do, or nothing before its deadline.
    struct asleep {
        const std::uint64_t* doorbell;
        std::uint64_t seen;
        std::uint32_t number;
    };

    bool rests(awake& each, unsigned moved) noexcept;
    void lay_down(std::size_t awake) noexcept;

    std::vector<place> places_; ///< number 1 first
    std::vector<awake> awake_;
    std::vector<asleep> asleep_;
    std::size_t looked_ = 0; ///< at this one of asleep_ last
    deadlines deadlines_;
    spin spin_;
};

} // namespace weftio::nic
