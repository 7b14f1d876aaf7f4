// The send side of an engine: its send queues, side by side, none waiting for another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "nic/soft/deadlines.hpp"
#include "nic/soft/key_table.hpp"
#include "nic/soft/send_headers.hpp"
#include "nic/soft/spin.hpp"
#include "nic/soft/tx_queue.hpp"

namespace weftio::nic {

/// Everything belongs to the engine: called by its thread, or between two of its turns.
class sender {
 public:
    /// Of queues with nothing to do, so many have their doorbell looked at in a turn: 4,096 of them must not make a
    /// busy one slow. More behind a turn that moved nothing, which may be one of an engine that sleeps in between.
    static constexpr std::uint32_t looks_of_a_busy_turn = 4, looks_of_an_idle_turn = 64;
    /// A queue that had nothing to do for so many turns has only its doorbell looked at.
    static constexpr std::uint32_t turns_awake = 256;

    sender(const wire& wire, const key_table& keys, send_pool& pool) : wire_(wire), keys_(keys), pool_(pool) {}

    /// One turn of every queue that has something to do, `most` entries each, so that none keeps another from its
    /// deadline; and a look at the doorbells of some that have not. Returns how much moved.
    /// @param busy  the engine has just moved something: few idle queues are looked at
    unsigned turn(std::uint32_t most, bool busy);
    /// One turn while the link is down: nothing is handed over, what comes back is completed. Returns how much moved.
    /// @param given_up  what is to be sent fails
    unsigned turn_without_link(bool given_up);
    /// Frames of packets longer than that are refused from now on; the driver may allow less.
    void limit_mtu(std::uint32_t mtu) noexcept;
    /// Sees to it that the next turn is one of this queue too, if there is such a queue.
    void wake(std::uint32_t number) noexcept;
    /// The earliest deadline that holds a queue; 0 when none does.
    std::uint64_t deadline_ns() const noexcept { return deadlines_.empty() ? 0 : deadlines_.first_ns(); }

    /// Takes up a queue, whose number is not in use and at least 1. The ring's memory must stay until remove(). Throws
    /// weftio::error errc::out_of_memory.
    void add(std::uint32_t number, tx_ring ring);
    /// The port is gone: what queues have, and will get, is flushed.
    void lose_port();
    tx_queue& queue(std::uint32_t number) noexcept { return *places_[number - 1].queue; }
    /// Numbers in use are 1 .. this; find() says which of them are.
    std::uint32_t queues() const noexcept { return static_cast<std::uint32_t>(places_.size()); }
    tx_queue* find(std::uint32_t number) const noexcept
    {
        return number <= places_.size() ? places_[number - 1].queue.get() : nullptr;
    }
    /// How many there are.
    std::size_t in_use() const noexcept { return awake_.size() + asleep_.size(); }
    /// As tx_queue::restart.
    void restart(std::uint32_t number, const tx_ring& ring) noexcept;
    /// Flushes what the driver has not taken and lets the queue go. Headers that the driver still holds go to the pool,
    /// which keeps them.
    void remove(std::uint32_t number);
    /// The queue executes nothing more until resume(), but sends what is half sent and completes what comes back.
    void pause(std::uint32_t number) noexcept { places_[number - 1].paused = true; }
    void resume(std::uint32_t number) noexcept { places_[number - 1].paused = false; }
    /// Of a queue that pauses: asks the driver as drained() does. Returns whether it holds nothing of the queue any
    /// more.
    bool settled(std::uint32_t number);
    /// The queue goes to another sender. @pre settled(); there reserve()
    std::unique_ptr<tx_queue> give_up(std::uint32_t number) noexcept;
    void take_up(std::uint32_t number, std::unique_ptr<tx_queue> queue) noexcept;
    /// Makes room for a queue of that number.
    void reserve(std::uint32_t number);
    /// Asks the driver for what it has finished with. Returns whether it holds nothing of the queue any more.
    bool drained(std::uint32_t number);
    /// Asks the driver likewise. Returns whether a frame that is on its way out lies in these bytes: of any queue here,
    /// or of any queue of the port that has ended.
    bool uses(const std::byte* begin, std::size_t bytes) const;

 private:
    static constexpr std::uint32_t nowhere = UINT32_MAX;

    struct place {
        std::unique_ptr<tx_queue> queue;
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

    void refuse(refusal reason, std::uint32_t detail);
    void collect(std::uint32_t number);
    void ask_driver() const noexcept;
    void keep_deadlines(bool busy) noexcept;
    void wake_after_removals() noexcept;
    bool rests(awake& each, unsigned moved) noexcept;
    void look_at_doorbells(std::size_t most) noexcept;
    void lay_down(std::size_t awake) noexcept;

    wire wire_;
    const key_table& keys_;
    send_pool& pool_;
    std::vector<place> places_; ///< number 1 first
    std::vector<awake> awake_;
    std::vector<asleep> asleep_;
    std::size_t looked_ = 0; ///< at this one of asleep_ last
    deadlines deadlines_;
    spin spin_;
    std::uint64_t removals_ = 0; ///< of keys, when queues behind a wait last had a turn for them
    bool port_lost_ = false;
};

} // namespace weftio::nic
