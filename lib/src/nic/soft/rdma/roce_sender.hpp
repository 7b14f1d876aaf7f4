// Where the packets of queue pairs leave a port.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/counter.hpp"
#include "dpdk/port_queue.hpp"
#include "net/roce_front.hpp"
#include "nic/soft/rdma/packet_trace.hpp"
#include "nic/soft/rdma/staged_copies.hpp"
#include "roce/transport.hpp"

struct rte_mbuf;

namespace weftio::nic::soft {

/// The UDP source port of packets from one queue pair to another: one flow for each two of them, so that a switch
/// spreads them over its links.
constexpr std::uint16_t source_port_between(std::uint32_t queue, std::uint32_t peer) noexcept
{
    constexpr std::uint32_t first_dynamic_port = 0xc000;
    return static_cast<std::uint16_t>(first_dynamic_port | ((queue ^ peer) & 0x3fff));
}

/// Builds packets in mbufs of the port and passes them to the driver in bursts. A packet to a queue pair of the same
/// port does not go to the driver: the owner gets it from take_own(). Called by the engine's thread only.
class roce_sender {
 public:
    explicit roce_sender(const dpdk::port_queue& port_queue);
    roce_sender(const roce_sender&) = delete;
    roce_sender& operator=(const roce_sender&) = delete;
    ~roce_sender();

    /// Builds a packet; copies and sums a long payload in one pass. @return false: nothing was taken, because there is
    /// no room now, because the packet is too long for an mbuf, or because of payload_gone()
    /// @param to_own  it is for a queue pair of this port; its ICRC is 0, unless frames are dumped
    bool put(net::roce_front& front, bool to_own, const roce::roce_headers& headers,
             std::span<const roce::piece> payload);
    /// Counts one copy, which takes the place of up to shortcut::most_packets_at_once packets of a request.
    void count_copy(std::size_t payload_bytes) noexcept
    {
        sent.add(1);
        sent_bytes.add(payload_bytes);
        copied.add(1);
        copied_bytes.add(payload_bytes);
    }
    /// Packets of put() with these headers wait for the copies of a queue pair so far, in order, until the next call or
    /// pass_all(). Others pass them. @pre serve_staged()
    void hold_for(const std::shared_ptr<copies_of_pair>& of, const net::roce_front* front) noexcept
    {
        holder_ = of;
        holder_front_ = front;
        note_special();
    }
    void pass_all() noexcept
    {
        holder_ = nullptr;
        note_special();
    }
    /// There was no room for a copy of the payload: the next put() takes nothing.
    void refuse_next() noexcept
    {
        refuses_next_ = true;
        note_special();
    }
    /// Copies of the engine; must outlive this.
    void serve_staged(staged_copies& copies) noexcept { copies_ = &copies; }
    /// Queues the packets whose copies are made. @return how many
    unsigned release_held();
    /// Packets that wait for failed copies are never sent. Notes the first response to a READ among them.
    void note_unsent(copies_of_pair& of) const noexcept;
    /// Packets that wait for copies.
    std::size_t held() const noexcept { return held_.size(); }
    /// Whether memory of the payload had gone at the last put() of a packet.
    bool payload_gone() const noexcept { return payload_gone_; }
    /// Queues a complete frame. @return false: no room now
    bool put(std::span<const std::uint8_t> frame);
    /// Passes the queued packets to the driver, as many as it takes.
    void flush() noexcept;
    /// Packets to queue pairs of this port, the oldest first, at most `most_own`. The caller frees them.
    std::span<rte_mbuf* const> take_own() noexcept;
    /// Returns the last of the packets from take_own(): the next call gives them again, before all others.
    void put_back_own(std::span<rte_mbuf* const> packets)
    {
        own_[0].insert(own_[0].begin(), packets.begin(), packets.end());
        put_back_ = packets.size();
    }
    /// See port_queue::is_under_way().
    bool is_under_way(const std::array<std::uint8_t, 6>& to, std::uint64_t& sent) const noexcept
    {
        return !port_lost_ && port_queue_.is_under_way(to, sent);
    }
    /// Whether a packet has found no room since the last ran_out().
    bool is_full() const noexcept { return ran_out_; }
    /// The same, and clears the mark.
    bool ran_out() noexcept { return std::exchange(ran_out_, false); }
    /// Records packets in `trace` from now on. @param trace  must outlive this
    void trace_to(packet_trace& trace) noexcept { trace_ = &trace; }
    /// The port is gone: later packets are lost.
    void lose_port() noexcept;

    static constexpr std::uint32_t burst = 64, most_own = 128, most_held = 512;
    /// Mbufs per access to the pool. The engine of the peer frees mbufs to the same pool: each access costs both
    /// engines a cache line.
    static constexpr std::uint32_t mbufs_at_once = 32;

    core::counter sent;                 ///< packets, and copies that took the place of packets
    core::counter sent_bytes;           ///< frame bytes; payload bytes where there was no packet
    core::counter copied, copied_bytes; ///< of `sent` and `sent_bytes`: copies

 private:
    /// A piece of the payload that a copy brings.
    struct gap {
        std::uint32_t at; ///< in the frame
        roce::piece bytes;
        staging_block block; ///< which has them
    };
    /// A packet that waits for copies. Its headers are written, and its other bytes.
    struct held_packet {
        rte_mbuf* mbuf;
        net::roce_front front; ///< as of its headers
        std::uint32_t payload_at, end;
        bool to_own, responds;
        std::uint32_t psn;
        std::uint64_t ticket;
        std::shared_ptr<copies_of_pair> of;
        std::vector<gap> gaps;
    };
    /// @return nothing: the packet goes the usual way
    std::optional<bool> put_specially(net::roce_front& front, bool to_own, const roce::roce_headers& headers,
                                      std::span<const roce::piece> payload);
    bool put_held(net::roce_front& front, bool to_own, const roce::roce_headers& headers,
                  std::span<const roce::piece> payload);
    bool fill_held(held_packet& packet, std::span<const roce::piece> payload) const;
    void finish(const held_packet& packet) const noexcept;
    static bool is_lost(const held_packet& packet) noexcept;
    static void note_unsent(const held_packet& packet) noexcept;
    void note_special() noexcept { special_ = port_lost_ || refuses_next_ || holder_ != nullptr; }
    bool has_room(bool to_own) noexcept;
    void stage(rte_mbuf& mbuf, bool to_own);
    void take_mbufs() noexcept;

    const dpdk::port_queue port_queue_;
    std::array<rte_mbuf*, burst> staged_{};
    std::uint16_t count_ = 0;
    /// Empty mbufs taken from the pool: those in [0, spare_). The last one is used next.
    std::array<rte_mbuf*, mbufs_at_once> spares_{};
    std::uint16_t spare_ = 0;
    std::array<std::vector<rte_mbuf*>, 2> own_; ///< [0]: being filled, [1]: being read
    std::size_t put_back_ = 0;                  ///< of own_[0]: packets that were taken before
    bool ran_out_ = false;
    packet_trace* trace_ = nullptr;
    bool payload_gone_ = false;
    bool port_lost_ = false, refuses_next_ = false;
    bool special_ = false; ///< packets do not go the usual way: one of the two, or holder_ is set
    std::shared_ptr<copies_of_pair> holder_;
    const net::roce_front* holder_front_ = nullptr;
    staged_copies* copies_ = nullptr;
    std::deque<held_packet> held_; ///< the oldest first
};

/// The sink of one connection.
class path_sink final : public roce::packet_sink {
 public:
    path_sink(roce_sender& sender, const net::roce_path& path, net::roce_front& front, bool to_own) noexcept
        : sender_(sender), path_(path), front_(front), to_own_(to_own)
    {}
    bool send(const roce::roce_headers& headers, std::span<const roce::piece> payload) override
    {
        return sender_.put(front_, to_own_, headers, payload);
    }
    bool payload_gone() const noexcept override { return sender_.payload_gone(); }
    bool is_under_way(std::uint64_t& sent) noexcept override
    {
        return !to_own_ && sender_.is_under_way(path_.destination_mac, sent);
    }

 private:
    roce_sender& sender_;
    const net::roce_path& path_;
    net::roce_front& front_;
    const bool to_own_;
};

} // namespace weftio::nic::soft
