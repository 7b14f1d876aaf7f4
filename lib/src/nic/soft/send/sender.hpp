// The send side of an engine: its send queues, side by side, none waiting for another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "memory/key_table.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/send/send_headers.hpp"
#include "nic/soft/send/tx_queue.hpp"
#include "nic/soft/send/work_list.hpp"

namespace weftio::nic {

/// Everything belongs to the engine: called by its thread, or between two of its turns.
class sender final : public unit {
 public:
    sender(const wire& wire, const nic_keys& keys, send_pool& pool) : wire_(wire), keys_(keys), pool_(pool) {}

    /// One turn of every queue that has something to do, so many entries each that none keeps another from its
    /// deadline; and a look at the doorbells of some that have not. While the link is down nothing is handed over, and
    /// what comes back is completed.
    unsigned turn(const turn_budget& budget) override;
    /// `given_up`: it has been down for so long that what is to be sent fails.
    enum class link_state { up, down, given_up };
    void set_link(link_state state) noexcept { link_ = state; }
    /// Frames of packets longer than that are refused from now on; the driver may allow less.
    void limit_mtu(std::uint32_t mtu) noexcept;
    /// Sees to it that the next turn is one of this queue too, if there is such a queue.
    void wake(std::uint32_t number) noexcept { queues_.wake(number); }
    std::uint64_t deadline_ns() const noexcept override { return queues_.deadline_ns(); }

    /// Takes up a queue, whose number is not in use and at least 1. The ring's memory must stay until remove(). Throws
    /// weftio::error errc::out_of_memory.
    void add(std::uint32_t number, tx_ring ring);
    /// The port is gone: what queues have, and will get, is flushed.
    void lose_port();
    tx_queue& queue(std::uint32_t number) noexcept { return *find(number); }
    /// Numbers in use are 1 .. this; find() says which of them are.
    std::uint32_t queues() const noexcept { return queues_.queues(); }
    tx_queue* find(std::uint32_t number) const noexcept
    {
        return static_cast<tx_queue*>(queues_.find(number)); // there are no others
    }
    /// How many there are.
    std::size_t in_use() const noexcept { return queues_.in_use(); }
    /// As tx_queue::restart.
    void restart(std::uint32_t number, const tx_ring& ring) noexcept;
    /// Flushes what the driver has not taken and lets the queue go. Headers that the driver still holds go to the pool,
    /// which keeps them.
    void remove(std::uint32_t number);
    /// The queue executes nothing more until resume(), but sends what is half sent and completes what comes back.
    void pause(std::uint32_t number) noexcept { queues_.pause(number); }
    void resume(std::uint32_t number) noexcept { queues_.resume(number); }
    /// Of a queue that pauses: asks the driver as drained() does. Returns whether it holds nothing of the queue any
    /// more.
    bool settled(std::uint32_t number);
    /// The queue goes to another sender. @pre settled(); there reserve()
    std::unique_ptr<tx_queue> give_up(std::uint32_t number) noexcept;
    void take_up(std::uint32_t number, std::unique_ptr<tx_queue> queue) noexcept;
    /// Makes room for a queue of that number.
    void reserve(std::uint32_t number) { queues_.reserve(number); }
    /// Asks the driver for what it has finished with. Returns whether it holds nothing of the queue any more.
    bool drained(std::uint32_t number);
    /// Asks the driver likewise. Returns whether a frame that is on its way out lies in these bytes: of any queue here,
    /// or of any queue of the port that has ended.
    bool uses(const std::byte* begin, std::size_t bytes) const;

 private:
    template <class Do>
    void for_each(Do&& what) const
    {
        for (std::uint32_t number = 1; number <= queues(); ++number)
            if (tx_queue* queue = find(number))
                what(*queue);
    }
    unsigned turn_without_link();
    void refuse(refusal reason, std::uint32_t detail);
    void collect(std::uint32_t number);
    void ask_driver() const noexcept;
    void wake_after_removals() noexcept;

    wire wire_;
    const nic_keys& keys_;
    send_pool& pool_;
    work_list queues_;
    std::uint64_t removals_ = 0; ///< of keys, when queues behind a wait last had a turn for them
    link_state link_ = link_state::up;
    bool port_lost_ = false;
};

} // namespace weftio::nic
