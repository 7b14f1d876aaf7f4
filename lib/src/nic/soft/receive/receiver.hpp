// The receive side of an engine: it takes packets from one DPDK port queue and writes them to the rings of kernels.
// Steps 2 to 5 of the path of a packet in docs/architecture.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/counter.hpp"
#include "dpdk/port_queue.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/receive/inbox.hpp"
#include "nic/soft/receive/rx_queue.hpp"
#include "nic/soft/receive/steering.hpp"
#include "weftio/counters.hpp"

struct rte_mbuf;

namespace weftio::nic::soft {

class packet_claimant;
class slot_pool;

/// Of one engine, and called by the engine's thread only, in a turn or in a change between two turns. Any thread
/// may call exhausted().
class receiver final : public unit {
 public:
    /// @param pool     pool from which the driver takes slots; nullptr: it takes none
    /// @param hold     a packet waits when its queue is full, instead of being dropped
    /// @param capture  capture file behind the port, or empty; an empty burst is the end of the file
    receiver(const dpdk::port_queue& from, slot_pool* pool, bool hold, std::string capture);
    receiver(const receiver&) = delete;
    receiver& operator=(const receiver&) = delete;
    ~receiver();

    /// Receive steps 2 to 5. First delivers the packets that other engines have handed over for queues of this engine.
    /// Then receives one burst, steers it, and writes completions or hands packets to the engines of their queues.
    /// Returns how many packets it moved. Receives nothing while there is neither a rule nor a claimant: until then
    /// packets wait in the driver.
    unsigned turn(const turn_budget& budget = {}) override;
    bool sends() const noexcept override { return false; }

    /// Receives nothing more, but continues to deliver the packets that it has.
    void port_lost() noexcept override { port_lost_ = true; }

    /// From now on, asks `claimant` for each packet, after those that were admitted before. The first claimant that
    /// claims a packet gets it, and no rule applies. With a claimant, the receiver also receives while no rule is
    /// installed, and drops unclaimed packets. Does nothing when `claimant` is admitted already. It must stay alive
    /// until dismiss().
    void admit(packet_claimant& claimant);
    void dismiss(packet_claimant& claimant) noexcept;
    /// Returns an mbuf of the packet that any thread may free: `mbuf` itself, or a copy when `mbuf` is in a slot of a
    /// queue. Returns nullptr when no mbuf is free for the copy.
    rte_mbuf* to_hand_over(rte_mbuf& mbuf) const noexcept;
    /// Makes the inbox, into which other engines put packets for queues of this engine. Call it before the first turn,
    /// on a port with several engines only.
    void open_inbox() { inbox_ = std::make_unique<inbox>(); }
    /// The lowest number that no queue of the port has. Every engine of the port knows all numbers, so all give the
    /// same answer.
    std::uint32_t free_number() const noexcept;
    /// Makes room for a queue of that number, at this engine or another. Afterwards add(), refer() and take_up()
    /// allocate nothing but the queue.
    void reserve(std::uint32_t number);
    /// Makes a queue. The memory of the ring must stay until remove(). @pre reserve()
    void add(std::uint32_t number, rx_ring ring);
    void remove(std::uint32_t number) noexcept;
    /// Records that the queue is at the engine of `owner`. @pre reserve()
    void refer(std::uint32_t number, receiver& owner) noexcept
    {
        elsewhere_[number] = {owner.inbox_.get(), &owner.queue(number)};
    }
    /// First step of moving a queue to the engine of `target`: moves the packets that other engines have handed over
    /// for the queue to the inbox of `target`. Returns false, and moves nothing, when that inbox has no room. give_up()
    /// here and take_up() at `target` follow, with no turn in between.
    bool hand_on(std::uint32_t number, receiver& target) noexcept;
    std::unique_ptr<rx_queue> give_up(std::uint32_t number) noexcept;
    void take_up(std::uint32_t number, std::unique_ptr<rx_queue> queue) noexcept;
    /// A queue of another engine is gone: drops the packets that are on their way to it.
    void forget(std::uint32_t number) noexcept;
    /// Restarts the queue in a new ring, of the same depth as the present one.
    void restart(std::uint32_t number, const rx_ring& ring);
    rx_queue& queue(std::uint32_t number) { return *queues_[number]; }
    steering& rules() noexcept { return steering_; }
    /// All numbers in use are below this one; find() says which of them are in use.
    std::uint32_t queues() const noexcept { return static_cast<std::uint32_t>(queues_.size()); }
    const rx_queue* find(std::uint32_t number) const noexcept { return queues_[number].get(); }
    /// The number of queues at this engine.
    std::size_t in_use() const noexcept;

    /// Adds to `counters` the packets that this engine has received, and where they are.
    /// @pre every engine is between two turns
    void count(port_counters& counters);
    /// Whether the capture file has been read to its end. Any thread.
    bool exhausted() const noexcept { return exhausted_.load(std::memory_order_acquire); }

 private:
    static constexpr std::uint16_t burst = 64;

    /// Where a queue of another engine is.
    struct queue_elsewhere {
        /// The inbox of that engine; nullptr: no other engine has a queue of this number.
        nic::soft::inbox* inbox = nullptr;
        rx_queue* queue = nullptr;
    };
    /// Data of a packet other than its bytes.
    struct arrival {
        const decision& where;
        net::packet_headers& headers; ///< read when where.parsed
        std::uint64_t real_time;
    };

    /// What has become of a packet.
    enum class fate : std::uint8_t {
        done, ///< delivered, handed over, or dropped and counted
        waits ///< for a free slot, or for room in an inbox; later packets wait, too
    };
    /// Where a packet is that was to go to a slot.
    enum class placed : std::uint8_t {
        in_slot,
        no_slot,    ///< none is free; the mbuf is left with the caller
        memory_gone ///< the queue has lost its memory and stopped; the mbuf is left with the caller
    };
    static constexpr drop_reason not_dropped = drop_reason::count_;

    fate take_in(unsigned& moved);
    unsigned fill_burst();
    unsigned give_claimed();
    void fetch_ahead(std::uint32_t at) const noexcept;
    rx_queue* taker_of_all() const;
    void deliver_plain();
    std::uint32_t add_copied(rx_queue& queue, completions& out, std::uint32_t at) noexcept;
    std::uint32_t turn_away(rx_queue& queue, std::uint32_t at) noexcept;
    placed put_in_slot(rx_queue& queue, rte_mbuf& mbuf, std::uint32_t& slot);
    placed copy_to_slot(rx_queue& queue, rte_mbuf& mbuf, std::uint32_t& slot) noexcept;
    fate take(rte_mbuf& mbuf);
    void steer(const rte_mbuf& mbuf);
    fate hand_over(rte_mbuf& mbuf);
    fate deliver_or_drop(rte_mbuf& mbuf, const arrival& arrival);
    void drop(rte_mbuf& mbuf, drop_reason reason);
    drop_reason deliver(rte_mbuf& mbuf, const arrival& arrival);
    placed finish(rx_queue& queue, rte_mbuf& mbuf, const arrival& arrival);
    static bool inspect_packet(const rx_queue& queue, std::uint32_t slot, std::uint32_t bytes, const arrival& arrival,
                               std::optional<std::uint16_t> tci, rx_facts& facts) noexcept;
    void close_ways_to(std::uint32_t number) noexcept;
    template <class Visit>
    void for_each_handed(Visit&& visit);
    std::uint64_t held();
    void abandon_staged(const rx_queue& queue) noexcept;
    void choose_lender() noexcept;
    void move_out(const rx_queue& queue) noexcept;
    void end_of_capture();

    const dpdk::port_queue from_;
    slot_pool* pool_;
    bool hold_;
    bool port_lost_ = false;
    std::vector<packet_claimant*> claimants_; ///< in the order in which they are asked
    std::string capture_;
    int timestamp_offset_ = -1;
    std::uint64_t timestamp_flag_ = 0;
    steering steering_;
    std::vector<std::unique_ptr<rx_queue>> queues_;
    std::vector<rx_queue*> landing_; ///< the queues whose packets go through staging
    std::vector<queue_elsewhere>
        elsewhere_; ///< queues of other engines, by number; empty while the port has one engine
    std::unique_ptr<nic::soft::inbox> inbox_;

    std::array<rte_mbuf*, burst> mbufs_{}; ///< the current burst; packets next_ .. count_ - 1 are still to be taken
    std::uint16_t next_ = 0, count_ = 0;
    std::uint64_t burst_real_time_ = 0; ///< receive time of the burst, in the format of a completion
    /// Headers of each packet of the burst, parsed once: before claimants are asked (parsed_), else when a rule needs
    /// them.
    std::array<net::packet_headers, burst> headers_;
    bool parsed_ = false;
    decision decision_{}; ///< the decision about mbufs_[next_]; valid when decided_
    bool decided_ = false;

    std::array<handed_packet, burst>
        handed_{}; ///< packets taken from the inbox; handed_next_ .. handed_count_ - 1 are still to be delivered
    std::size_t handed_next_ = 0, handed_count_ = 0;

    core::counter received_, received_bytes_, delivered_, copied_bytes_, damaged_;
    std::array<core::counter, static_cast<std::size_t>(drop_reason::count_)> dropped_;
    std::atomic<bool> exhausted_{false};
};

} // namespace weftio::nic::soft
