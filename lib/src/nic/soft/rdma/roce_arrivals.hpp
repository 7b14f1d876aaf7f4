// How packets for queue pairs reach them: from the driver, from other engines, and from this port.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/counter.hpp"
#include "nic/soft/rdma/packet_trace.hpp"
#include "nic/soft/rdma/pair_commons.hpp"
#include "nic/soft/rdma/roce_directory.hpp"
#include "nic/soft/receive/inbox.hpp"
#include "nic/soft/receive/packet_claimant.hpp"
#include "nic/soft/receive/receiver.hpp"

namespace weftio::nic::soft {

/// The packets that reach the queue pairs of one engine: from the driver, from other engines, and from queue pairs of
/// the port. Called by the engine's thread only. Any thread may read the counters.
///
/// Claims two kinds of packets ahead of the port's rules: RoCE packets (UDP port 4791) to an address that the directory
/// claims, in the VLAN of that address; and ARP and ND messages for the port's own addresses. The directory says which
/// engine processes a packet. A packet for another engine goes to the inbox of that one. Each claimed packet counts
/// once, by its result, where it was processed.
class roce_arrivals final : public packet_claimant {
 public:
    /// @param receiver  of the engine; must outlive this, as all others
    roce_arrivals(pair_commons& commons, receiver& receiver, roce_directory& directory) noexcept
        : commons_(commons), receiver_(receiver), directory_(directory)
    {}
    roce_arrivals(const roce_arrivals&) = delete;
    roce_arrivals& operator=(const roce_arrivals&) = delete;
    ~roce_arrivals();

    bool claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept override;
    bool take(rte_mbuf& mbuf, const net::packet_headers& headers) override;
    /// Processes the packets that other engines have handed over. @return how many
    unsigned take_in();
    /// Processes the packets between queue pairs of this port, whose ICRC is not checked. Those from the first that
    /// finds no room in the inbox of another engine on wait for the next call. @return how many
    unsigned take_own();
    /// How many packets take() has had since the last call.
    unsigned taken() noexcept { return std::exchange(taken_, 0); }
    /// Makes the inbox. Call it before the first turn, on a port with several engines only.
    void open_inbox() { inbox_ = std::make_unique<inbox_of<handed>>(); }
    /// Records packets in `trace` from now on. @param trace  must outlive this
    void trace_to(packet_trace& trace) noexcept { trace_ = &trace; }

    /// claimed = neighbor + delivered + malformed + wrong_ip_checksum + wrong_udp_checksum + rx_icrc_encapsulated +
    /// for_nobody + not_from_peer + other_mac + congestion + inbox_full
    core::counter claimed, delivered;
    core::counter received_bytes;       ///< frame bytes of RoCE packets
    core::counter neighbor;             ///< ARP and ND messages for the port's own addresses
    core::counter malformed;            ///< not a packet for a queue pair: see roce_refusal
    core::counter wrong_ip_checksum;    ///< IPv4 header
    core::counter wrong_udp_checksum;   ///< UDP datagram with a checksum
    core::counter rx_icrc_encapsulated; ///< wrong ICRC
    core::counter for_nobody;           ///< no queue pair has that number, or is in that multicast group
    core::counter not_from_peer;        ///< the queue pair has another peer, or none
    core::counter other_mac;            ///< the frame's MAC is of another host
    core::counter congestion;           ///< CNPs: counted, otherwise ignored
    core::counter inbox_full;           ///< lost: the inbox of the engine that processes it had no room

 private:
    /// A packet that another engine has claimed or built.
    struct handed {
        rte_mbuf* mbuf = nullptr;
        net::packet_headers headers{};
        bool own = false; ///< see roce_arrival
    };
    enum class mbuf_is : std::uint8_t {
        done,     ///< its caller frees it
        given,    ///< another engine frees it
        left_here ///< nothing has happened: the inbox of another engine is full
    };

    mbuf_is process(rte_mbuf& mbuf, const net::packet_headers& headers, bool own);
    mbuf_is hand_over(roce_arrivals& to, rte_mbuf& mbuf, const net::packet_headers& headers, bool own) noexcept;
    core::counter& deliver(const roce_arrival& arrival, net::roce_refusal form, const roce_directory::entry& to);
    core::counter& deliver_to_group(const roce_arrival& arrival);
    core::counter* damage(const roce_arrival& arrival) noexcept;
    core::counter& meet(std::span<const std::uint8_t> frame, const net::packet_headers& headers);
    void count(core::counter& result) noexcept;
    void note(const rte_mbuf& mbuf) noexcept;

    pair_commons& commons_;
    receiver& receiver_;
    roce_directory& directory_;
    packet_trace* trace_ = nullptr;
    std::unique_ptr<inbox_of<handed>> inbox_; ///< nullptr: the port has one engine
    unsigned taken_ = 0;
};

} // namespace weftio::nic::soft
