// RDMA of one engine of a port: its queue pairs and their packets.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/counter.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/rdma/neighbors.hpp"
#include "nic/soft/rdma/packet_trace.hpp"
#include "nic/soft/rdma/queue_pair.hpp"
#include "nic/soft/rdma/rdma_wire.hpp"
#include "nic/soft/receive/packet_claimant.hpp"
#include "nic/soft/receive/receiver.hpp"
#include "nic/soft/work/work_list.hpp"

namespace weftio::nic::soft {

/// Owned by the engine, and called by the engine's thread only, in a turn or in a change between two turns. Any thread
/// may read the counters.
///
/// Claims two kinds of packets ahead of the port's rules: RoCE packets (UDP port 4791) to an address of the port or of
/// a connected queue pair, in the VLAN of that address; and questions for the MACs of the port's own addresses. Each
/// claimed packet counts once, by its result.
class rdma_unit final : public unit, public packet_claimant, private pair_port {
 public:
    /// @param receiver   of the engine; must outlive this
    /// @param by_packet  see port_options::rdma_by_packet
    rdma_unit(const dpdk::wire& wire, const keys::nic_keys& keys, receiver& receiver, bool by_packet);

    unsigned turn(const turn_budget& budget) override;
    bool claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept override;
    void take(rte_mbuf& mbuf, const net::packet_headers& headers) override;

    /// Adds a queue pair and returns its number. Numbers are given in a circle and reused as late as possible, so that
    /// late packets for a removed queue pair do not reach another one. The memory of the rings must stay valid until
    /// remove(). @throws weftio::error errc::out_of_memory
    std::uint32_t add(pair_rings rings);
    void connect(std::uint32_t number, const rdma_connection& to);
    void restart(std::uint32_t number, const pair_rings& rings);
    /// See nic::rdma_queue. @param rings  the present ones
    void modify(std::uint32_t number, rdma_state to, const rdma_connection& how, const pair_rings& rings);
    void remove(std::uint32_t number) noexcept;
    queue_pair* find(std::uint32_t number) const noexcept
    {
        return static_cast<queue_pair*>(queues_.find(number)); // every queue here is a queue_pair
    }
    /// No queue pair has a lower number.
    std::uint32_t first() const noexcept { return queues_.first(); }
    /// No queue pair has a higher number.
    std::uint32_t last() const noexcept { return queues_.last(); }
    void port_lost() noexcept override { wire.lose_port(); }

    /// @throws weftio::error errc::in_use the port has the address already
    void add_address(const rdma_own_address& own);
    void remove_address(const net::roce_gid& address);
    neighbors& addresses() noexcept { return neighbors_; }
    /// Sends an ARP or ND question for `target` from the port's own address `from`. It is lost if there is no room to
    /// send.
    void ask(const net::roce_gid& from, const net::roce_gid& target);

    /// claimed = neighbor + delivered + malformed + wrong_ip_checksum + wrong_udp_checksum + rx_icrc_encapsulated +
    /// for_nobody + not_from_peer + other_mac + congestion
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
    const rdma_wire& sent() const noexcept { return wire; }
    /// Memory of requests and answers in flight, in bytes. Call it between two turns.
    std::size_t bytes_under_way() const noexcept { return work.pool.in_use(); }

    /// Starts to keep the last packets. From then on, queue pairs of this port also exchange real packets.
    void trace_packets();
    /// The kept packets; nullptr: none are kept.
    const packet_trace* trace() const noexcept { return trace_.get(); }

 private:
    /// An address, in a VLAN or in none.
    struct claimed_address {
        net::header_address address{};
        std::uint16_t vlan = no_vlan;
        bool operator==(const claimed_address&) const = default;
    };
    static claimed_address claimed_address_of(const queue_pair& queue) noexcept;

    unsigned take_own();
    void share_packets() noexcept;
    core::counter* damage(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                          const net::roce_packet& packet) noexcept;
    core::counter& deliver(std::span<const std::uint8_t> frame, const net::packet_headers& headers, bool own);
    void note(const rte_mbuf& mbuf) noexcept;
    void write_traces_of_failures();
    core::counter& meet(std::span<const std::uint8_t> frame, const net::packet_headers& headers);
    std::uint32_t take_number();
    bool is_ours(const claimed_address& at) const noexcept;
    bool is_to_us(const net::packet_headers& headers) const noexcept;
    void note_addresses();
    void find_peer_of(queue_pair& queue) noexcept;

    const keys::nic_keys& keys_;
    receiver& receiver_;
    const bool by_packet_;
    const std::string folder_; ///< for traces of failed queue pairs; empty: none is written
    std::unique_ptr<packet_trace> trace_;
    work_list queues_;
    std::uint32_t next_number_ = first();
    std::uint32_t share_ = queue_pair::packets_of_a_turn; ///< most packets of a queue pair in a turn
    unsigned taken_ = 0;                                  ///< packets taken from the receiver since the last turn
    unsigned ours_before_ = 0;                            ///< what queue pairs have moved in the previous turn
    neighbors neighbors_;
    std::vector<claimed_address> claimed_addresses_; ///< of the port and of connected queue pairs, without duplicates
};

} // namespace weftio::nic::soft
