// The send side of an engine: its Ethernet send queues, none of which waits for another. Steps 2 to 6 of the path of an
// entry in docs/architecture.md.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "keys/key_table.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/send/pull_stream.hpp"
#include "nic/soft/send/send_headers.hpp"
#include "nic/soft/send/tx_queue.hpp"
#include "nic/soft/work/work_list.hpp"

namespace weftio::nic::soft {

/// Owned by the engine, and called by the engine's thread only, in a turn or in a change between two turns.
class sender final : public unit {
 public:
    sender(const dpdk::port_queue& port_queue, const keys::nic_keys& keys, send_pool& pool)
        : port_queue_(port_queue), keys_(keys), pool_(pool)
    {}

    /// Send steps 2 to 6. Polls the records of some idle queues. Then gives every queue with work a turn of at most
    /// `budget.entries` entries, so that no queue keeps another from its deadline. While the link is down, hands no
    /// frame to the driver and only completes frames that come back.
    unsigned turn(const turn_budget& budget) override;
    /// Hands over nothing while the link is down, and fails entries once the link is given up. From now on, refuses
    /// packets longer than the MTU; the driver's limit may be lower.
    void link_changed(const link_state& now) noexcept override;
    /// Wakes the queue, so that the sender's next turn includes it. Does nothing when no queue has the number.
    void wake(std::uint32_t number) noexcept { queues_.wake(number); }
    std::uint64_t deadline_ns() const noexcept override { return queues_.deadline_ns(); }

    /// Makes a queue. No queue has the number, which is at least 1. The memory of the ring must stay until remove().
    /// Throws weftio::error errc::out_of_memory.
    void add(std::uint32_t number, tx_ring ring);
    /// Flushes all entries of all queues, now and from now on.
    void port_lost() override;
    tx_queue& queue(std::uint32_t number) noexcept { return *find(number); }
    /// The copy engines of devices whose memory frames are sent from.
    pull_streams& pulls() noexcept { return pulls_; }
    /// All numbers in use are in 1 .. queues(); find() says which of them are in use.
    std::uint32_t queues() const noexcept { return queues_.queues(); }
    tx_queue* find(std::uint32_t number) const noexcept
    {
        return static_cast<tx_queue*>(queues_.find(number)); // every queue of a sender is a tx_queue
    }
    /// The number of queues at this engine.
    std::size_t in_use() const noexcept { return queues_.in_use(); }
    /// Restarts a queue in a new ring: see tx_queue::restart().
    void restart(std::uint32_t number, const tx_ring& ring) noexcept;
    /// Removes a queue: flushes the entries that the driver has not taken. The pool keeps the mbuf headers that the
    /// driver still holds.
    void remove(std::uint32_t number);
    /// The NIC has revoked a key: wakes waiting queues, because they may have prepared frames in its memory.
    void key_forgotten() noexcept { queues_.wake_those_that_wait(); }
    /// Pauses the queue: until resume() it executes no entry, but hands over frames that are staged and completes
    /// frames that come back.
    void pause(std::uint32_t number) noexcept { queues_.pause(number); }
    void resume(std::uint32_t number) noexcept { queues_.resume(number); }
    /// Asks the driver to return the frames of a paused queue that it has sent. Returns whether the driver holds no
    /// frame of the queue.
    bool driver_holds_none(std::uint32_t number);
    /// Moves a queue to another sender: give_up() here, take_up() there.
    /// @pre driver_holds_none(number); reserve() at the other sender
    std::unique_ptr<tx_queue> give_up(std::uint32_t number) noexcept;
    void take_up(std::uint32_t number, std::unique_ptr<tx_queue> queue) noexcept;
    /// Makes room for a queue of that number, so that take_up() allocates nothing.
    void reserve(std::uint32_t number, const tx_ring& ring) { queues_.reserve(number, ring); }
    /// Asks the driver to return the frames of a queue that it has sent. Returns whether the driver holds no frame of
    /// the queue.
    bool drained(std::uint32_t number);
    /// Asks the driver to return all frames that it has sent. Returns whether these bytes contain a frame that is
    /// staged or that the driver has not returned: a frame of any queue here, or of any removed queue of the port.
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

    dpdk::port_queue port_queue_;
    const keys::nic_keys& keys_;
    send_pool& pool_;
    pull_streams pulls_;
    work_list queues_;
    link_state link_{};
    bool port_lost_ = false;
};

} // namespace weftio::nic::soft
