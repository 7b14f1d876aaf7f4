// Where packets of queue pairs leave a port.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/counter.hpp"
#include "dpdk/wire.hpp"
#include "net/roce_front.hpp"
#include "nic/soft/rdma/packet_trace.hpp"
#include "roce/transport.hpp"

struct rte_mbuf;

namespace weftio::nic::soft {

/// Builds packets in mbufs of the port and gives them to the driver in bursts. A packet to a queue of the same port
/// does not go to the driver: the owner takes it here. Only the engine calls it.
class rdma_wire {
 public:
    explicit rdma_wire(const dpdk::wire& wire);
    rdma_wire(const rdma_wire&) = delete;
    rdma_wire& operator=(const rdma_wire&) = delete;
    ~rdma_wire();

    /// Builds a packet, its payload copied and summed in one pass. @return false: no room now, or payload_gone();
    /// nothing was taken
    /// @param to_own  it is for a queue pair of this port: its ICRC is 0
    bool put(net::roce_front& front, bool to_own, const roce::roce_headers& headers,
             std::span<const roce::piece> payload);
    /// Counts a packet to a queue pair of this port that was not built.
    void count_own(std::size_t payload_bytes) noexcept
    {
        sent.add(1);
        sent_bytes.add(payload_bytes);
        own.add(1);
    }
    /// Whether the last put() of a packet has found memory of the payload gone.
    bool payload_gone() const noexcept { return payload_gone_; }
    /// Puts a whole frame. @return false: no room now
    bool put(std::span<const std::uint8_t> frame);
    /// Gives the driver what it takes of the packets that were put.
    void flush() noexcept;
    /// Packets to queues of this port, the oldest first; the caller frees them. At most `most_own` are there.
    std::span<rte_mbuf* const> take_own() noexcept;
    /// Whether a packet has found no room since the last ran_out().
    bool is_full() const noexcept { return ran_out_; }
    /// Whether a packet has found no room since the last call.
    bool ran_out() noexcept { return std::exchange(ran_out_, false); }
    /// Notes packets there from now on. @param trace  must outlive this
    void trace_to(packet_trace& trace) noexcept { trace_ = &trace; }
    /// The port is gone: packets are lost from now on.
    void lose_port() noexcept;

    static constexpr std::uint32_t burst = 64, most_own = 128;
    /// The pool is shared with the engine of the peer, which gives mbufs back: each call costs both a cache line.
    static constexpr std::uint32_t mbufs_at_once = 32;

    core::counter sent;       ///< packets; what a queue pair of this port executes at once counts as one
    core::counter sent_bytes; ///< of frames; of what is executed at once, of payload
    core::counter own;        ///< of `sent`, to queue pairs of this port

 private:
    bool has_room(bool to_own) noexcept;
    void stage(bool to_own);
    void take_mbufs() noexcept;

    const dpdk::wire wire_;
    std::array<rte_mbuf*, burst> staged_{};
    std::uint16_t count_ = 0;
    /// Empty mbufs that were taken from the pool at once: those in [0, spare_). The last one is used next.
    std::array<rte_mbuf*, mbufs_at_once> spares_{};
    std::uint16_t spare_ = 0;
    std::array<std::vector<rte_mbuf*>, 2> own_; ///< being filled, and being read
    bool ran_out_ = false;
    packet_trace* trace_ = nullptr;
    bool payload_gone_ = false;
    bool port_lost_ = false;
};

/// The sink of one connection.
class path_sink final : public roce::packet_sink {
 public:
    path_sink(rdma_wire& wire, net::roce_front& front, bool to_own) noexcept
        : wire_(wire), front_(front), to_own_(to_own)
    {}
    bool send(const roce::roce_headers& headers, std::span<const roce::piece> payload) override
    {
        return wire_.put(front_, to_own_, headers, payload);
    }
    bool payload_gone() const noexcept override { return wire_.payload_gone(); }

 private:
    rdma_wire& wire_;
    net::roce_front& front_;
    const bool to_own_;
};

} // namespace weftio::nic::soft
