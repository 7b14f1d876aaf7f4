// RDMA of one engine of a port: its queue pairs and their packets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/counter.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/rdma/packet_trace.hpp"
#include "nic/soft/rdma/pair_commons.hpp"
#include "nic/soft/rdma/queue_pair.hpp"
#include "nic/soft/rdma/roce_directory.hpp"
#include "nic/soft/receive/inbox.hpp"
#include "nic/soft/receive/packet_claimant.hpp"
#include "nic/soft/receive/receiver.hpp"

namespace weftio::nic::soft {

/// Owned by the engine, and called by the engine's thread only, in a turn or in a change between two turns. Functions
/// that change queue pairs are called while every engine of the port is between two turns. Any thread may read the
/// counters.
///
/// Claims two kinds of packets ahead of the port's rules: RoCE packets (UDP port 4791) to an address that the directory
/// claims, in the VLAN of that address; and ARP and ND messages for the port's own addresses. The directory says which
/// engine processes a packet. A packet for another engine goes to the inbox of that one. Each claimed packet counts
/// once, by its result, where it was processed.
class rdma_unit final : public unit, public packet_claimant {
 public:
    /// @param receiver   of the engine; must outlive this, as must `directory`
    /// @param by_packet  see port_options::rdma_by_packet
    rdma_unit(const dpdk::port_queue& port_queue, const keys::nic_keys& keys, receiver& receiver,
              roce_directory& directory, bool by_packet);
    rdma_unit(const rdma_unit&) = delete;
    rdma_unit& operator=(const rdma_unit&) = delete;
    ~rdma_unit();

    unsigned turn(const turn_budget& budget) override;
    bool claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept override;
    bool take(rte_mbuf& mbuf, const net::packet_headers& headers) override;
    void port_lost() noexcept override { commons_.sender.lose_port(); }
    /// Makes the inbox. Call it before the first turn, on a port with several engines only.
    void open_inbox() { inbox_ = std::make_unique<inbox_of<handed>>(); }

    /// Adds a queue pair and returns its number. The memory of the rings must stay valid until remove().
    /// @throws weftio::error errc::out_of_memory
    std::uint32_t add(pair_rings rings, rdma_service service);
    void restart(std::uint32_t number, const pair_rings& rings);
    /// See nic::rdma_queue. @param rings  the present ones
    void modify(std::uint32_t number, rdma_state to, const rdma_connection& how, const pair_rings& rings);
    void remove(std::uint32_t number) noexcept;
    queue_pair* find(std::uint32_t number) const noexcept
    {
        return static_cast<queue_pair*>(commons_.queues.find(number)); // every queue here is a queue_pair
    }
    /// Calls `each` with the number and the queue pair, for all queue pairs of this engine.
    template <class Each>
    void for_each(Each&& each) const
    {
        const work_list& queues = commons_.queues;
        for (std::uint32_t number = queues.first(); number <= queues.last(); ++number)
            if (queue_pair* const queue = find(number))
                each(number, *queue);
    }
    /// How many queue pairs this engine has.
    std::size_t in_use() const noexcept { return commons_.queues.in_use(); }
    /// The directory has changed. @param any  whether the port claims any address
    void addresses_changed(bool any);
    /// Sends an ARP or ND question for `target` from the port's own address `from`. It is lost if there is no room to
    /// send.
    void ask(const net::roce_gid& from, const net::roce_gid& target);

    /// claimed = neighbor + delivered + malformed + wrong_ip_checksum + wrong_udp_checksum + rx_icrc_encapsulated +
    /// for_nobody + not_from_peer + other_mac + congestion + inbox_full
    core::counter claimed, delivered;
    core::counter neighbor;             ///< ARP and ND messages for the port's own addresses
    core::counter malformed;            ///< not a packet for a queue pair: see roce_refusal
    core::counter wrong_ip_checksum;    ///< IPv4 header
    core::counter wrong_udp_checksum;   ///< UDP datagram with a checksum
    core::counter rx_icrc_encapsulated; ///< wrong ICRC
    core::counter for_nobody;           ///< no queue pair has that number
    core::counter not_from_peer;        ///< the queue pair has another peer, or none
    core::counter other_mac;            ///< the frame's MAC is of another host
    core::counter congestion;           ///< CNPs: counted, otherwise ignored
    core::counter inbox_full;           ///< lost: the inbox of the engine that processes it had no room
    const roce_sender& sent() const noexcept { return commons_.sender; }
    /// Memory of requests and answers in flight, in bytes. Call it between two turns.
    std::size_t bytes_under_way() const noexcept { return commons_.work.pool.in_use(); }

    /// Starts to keep the last packets. From then on, queue pairs of this engine also exchange real packets.
    void trace_packets();
    /// The kept packets; nullptr: none are kept.
    const packet_trace* trace() const noexcept { return trace_.get(); }

 private:
    /// A packet that another engine has claimed or built.
    struct handed {
        rte_mbuf* mbuf = nullptr;
        net::packet_headers headers{};
        bool own = false; ///< see roce_arrival
    };
    /// What becomes of the mbuf of a packet.
    enum class fate : std::uint8_t {
        free_now,
        kept,   ///< another engine frees it
        no_room ///< nothing has happened: the inbox of another engine is full
    };

    unsigned take_in();
    unsigned take_own();
    void share_packets() noexcept;
    fate process(rte_mbuf& mbuf, const net::packet_headers& headers, bool own);
    fate hand_over(rdma_unit& to, rte_mbuf& mbuf, const net::packet_headers& headers, bool own) noexcept;
    core::counter* damage(const roce_arrival& arrival) noexcept;
    core::counter& deliver(const roce_arrival& arrival, net::roce_refusal form, roce_receiver* to);
    core::counter& meet(std::span<const std::uint8_t> frame, const net::packet_headers& headers);
    void count(core::counter& result) noexcept;
    void note(const rte_mbuf& mbuf) noexcept;
    void write_traces_of_failures();
    void find_peer_of(queue_pair& queue) noexcept;

    const keys::nic_keys& keys_;
    receiver& receiver_;
    roce_directory& directory_;
    const bool by_packet_;
    const std::string folder_; ///< for traces of failed queue pairs; empty: none is written
    std::unique_ptr<packet_trace> trace_;
    std::unique_ptr<inbox_of<handed>> inbox_; ///< nullptr: the port has one engine
    pair_commons commons_;
    std::uint32_t share_ = queue_pair::packets_of_a_turn; ///< most packets of a queue pair in a turn
    unsigned taken_ = 0;                                  ///< packets taken from the receiver since the last turn
    unsigned ours_before_ = 0;                            ///< what queue pairs have moved in the previous turn
};

} // namespace weftio::nic::soft
