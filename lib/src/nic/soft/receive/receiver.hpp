// The receive side of an engine: packets from one DPDK port queue to the rings of kernels.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/counter.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/receive/inbox.hpp"
#include "nic/soft/receive/rx_queue.hpp"
#include "nic/soft/receive/steering.hpp"
#include "weftio/port.hpp"

struct rte_mbuf;

namespace weftio::nic {

class rx_pool;

/// Everything but counters and exhausted() belongs to the engine: called by its thread, or between two of its turns.
class receiver final : public unit {
 public:
    struct port_queue {
        std::uint16_t port, queue;
    };
    /// @param pool     what the driver takes mbufs from, if that can lend slots of queues; else nullptr
    /// @param hold     wait when a queue is full instead of dropping
    /// @param capture  file behind the port, empty when it is none: a poll that finds nothing is its end
    receiver(port_queue from, rx_pool* pool, bool hold, std::string capture);
    receiver(const receiver&) = delete;
    receiver& operator=(const receiver&) = delete;
    ~receiver();

    /// Takes what other engines have received for queues here; then receives one burst, steers it and writes
    /// completions, or hands packets to the engine of their queue. Returns how many it moved. Receives nothing while no
    /// rule wants a packet: until then they wait in the driver.
    unsigned turn(const turn_budget& budget = {}) override;
    bool sends() const noexcept override { return false; }

    /// The port is gone: nothing is received any more, but what has been goes on.
    void lose_port() noexcept { port_lost_ = true; }

    /// For a port with several engines, before the first turn: others may have packets for queues here.
    void open_inbox() { inbox_ = std::make_unique<inbox>(); }
    /// The lowest number that no queue of the port has, as far as it was told to this engine. All have been told the
    /// same.
    std::uint32_t free_number() const noexcept;
    /// Makes room for a queue of that number, here or elsewhere; what follows allocates no more than the queue.
    void reserve(std::uint32_t number);
    /// Takes up a queue. The ring's memory must stay until remove(). @pre reserve()
    void add(std::uint32_t number, rx_ring ring);
    void remove(std::uint32_t number) noexcept;
    /// That queue is at the engine of `owner`. @pre reserve()
    void refer(std::uint32_t number, receiver& owner) noexcept
    {
        elsewhere_[number] = {owner.inbox_.get(), &owner.queue(number)};
    }
    /// The queue goes to another engine, without being touched by a turn in between: what other engines have handed
    /// over for it goes to the inbox of `target`, or nothing does and this returns false, when that has no room; then
    /// it leaves here and is taken up there.
    bool hand_on(std::uint32_t number, receiver& target) noexcept;
    std::unique_ptr<rx_queue> give_up(std::uint32_t number) noexcept;
    void take_up(std::uint32_t number, std::unique_ptr<rx_queue> queue) noexcept;
    /// That queue, which was elsewhere, has gone.
    void forget(std::uint32_t number) noexcept;
    /// The queue's life ends and another begins, in a ring that has been made anew.
    void restart(std::uint32_t number, const rx_ring& ring);
    const rx_queue& queue(std::uint32_t number) const { return *queues_[number]; }
    rx_queue& queue(std::uint32_t number) { return *queues_[number]; }
    steering& rules() noexcept { return steering_; }
    /// Numbers in use are below this; find() says which of them are.
    std::uint32_t queues() const noexcept { return static_cast<std::uint32_t>(queues_.size()); }
    const rx_queue* find(std::uint32_t number) const noexcept { return queues_[number].get(); }
    /// How many there are.
    std::size_t in_use() const noexcept;

    /// Adds what it has received, and where that is now. @pre every engine is between two turns
    void count(port_counters& counters);
    /// Any thread.
    bool exhausted() const noexcept { return exhausted_.load(std::memory_order_acquire); }

 private:
    static constexpr std::uint16_t burst = 64;

    /// Of a queue at another engine.
    struct other_place {
        nic::inbox* inbox = nullptr; ///< nullptr: no such queue
        rx_queue* queue = nullptr;
    };
    /// What is known of a packet besides its bytes.
    struct arrival {
        const decision& where;
        packet_headers& headers;
        std::uint64_t real_time;
    };

    bool take_in(unsigned& moved);
    void fill_burst();
    rx_queue* taker_of_all() const;
    void deliver_plain();
    std::uint32_t add_copied(rx_queue& queue, completions& out, std::uint32_t at) noexcept;
    std::uint32_t turn_away(rx_queue& queue, std::uint32_t at) noexcept;
    bool place(rx_queue& queue, rte_mbuf& mbuf, std::uint32_t& slot);
    bool place_by_copy(rx_queue& queue, rte_mbuf& mbuf, std::uint32_t& slot) noexcept;
    bool take(rte_mbuf& mbuf);
    void steer(const rte_mbuf& mbuf);
    bool hand_over(rte_mbuf& mbuf);
    rte_mbuf* to_hand_over(rte_mbuf& mbuf);
    bool settle(rte_mbuf& mbuf, const arrival& arrival);
    void drop(rte_mbuf& mbuf, drop_reason reason);
    bool deliver(rte_mbuf& mbuf, const arrival& arrival, drop_reason& reason);
    bool finish(rx_queue& queue, rte_mbuf& mbuf, const arrival& arrival);
    void close_ways_to(std::uint32_t number) noexcept;
    template <class Look>
    void for_each_handed(Look&& look);
    std::uint64_t held();
    void abandon_staged(const rx_queue& queue) noexcept;
    void choose_lender() noexcept;
    void move_out(const rx_queue& queue) noexcept;
    void end_of_capture();

    port_queue from_;
    rx_pool* pool_;
    bool hold_;
    bool port_lost_ = false;
    std::string capture_;
    int timestamp_offset_ = -1;
    std::uint64_t timestamp_flag_ = 0;
    steering steering_;
    std::vector<std::unique_ptr<rx_queue>> queues_;
    std::vector<rx_queue*> landing_;     ///< those whose packets are copied on
    std::vector<other_place> elsewhere_; ///< by number; empty while the port has one engine
    std::unique_ptr<nic::inbox> inbox_;

    std::array<rte_mbuf*, burst> mbufs_{}; ///< the burst in hand: next_ .. count_ are still to be taken
    std::uint16_t next_ = 0, count_ = 0;
    std::uint64_t burst_real_time_ = 0; ///< as in a completion
    decision decision_{};               ///< of mbufs_[next_], when decided_
    packet_headers headers_{};
    bool decided_ = false;

    std::array<handed_packet, burst>
        handed_{}; ///< from the inbox: handed_next_ .. handed_count_ are still to be delivered
    std::size_t handed_next_ = 0, handed_count_ = 0;

    detail::counter received_, received_bytes_, delivered_, copied_bytes_, damaged_;
    std::array<detail::counter, static_cast<std::size_t>(drop_reason::count_)> dropped_;
    std::atomic<bool> exhausted_{false};
};

} // namespace weftio::nic
