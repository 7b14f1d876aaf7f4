// A queue pair: a send ring and a receive ring, and the connection that executes them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "keys/key_table.hpp"
#include "nic/rdma_backend.hpp"
#include "nic/soft/rdma/pair_commons.hpp"
#include "nic/soft/rdma/rdma_receives.hpp"
#include "nic/soft/rdma/rdma_sends.hpp"
#include "nic/soft/rdma/refusal_counts.hpp"
#include "nic/soft/rdma/responder_failures.hpp"
#include "nic/soft/rdma/roce_directory.hpp"
#include "nic/soft/work/turn_taker.hpp"
#include "roce/key_memory.hpp"
#include "roce/requester.hpp"
#include "roce/responder.hpp"
#include "weftio/rdma_dump.hpp"

namespace weftio::nic::soft {

/// A queue pair with completion queues begins in RESET, and can be in SQE; any other begins in INIT. Entries wait until
/// the queue pair is in RTS. A failure of one side ends the other, except in SQE: all entries of both rings are
/// flushed. RC answers a refused request with a NAK.
class queue_pair final : public turn_taker, public roce_receiver {
 public:
    /// Most packets that one turn sends: so many answers, and so many requests.
    static constexpr std::uint32_t packets_of_a_turn = 64;
    /// After so many turns in which it only waited for an answer, a queue pair sleeps until the answer comes, a timeout
    /// expires or an entry is committed. It does not sleep earlier, because an answer is often close.
    static constexpr std::uint32_t turns_waiting = 64;

    /// @param keys, commons  must outlive this
    queue_pair(const pair_rings& rings, rdma_service service, const keys::nic_keys& keys, pair_commons& commons);

    bool connected() const noexcept { return connection_.has_value(); }
    /// See nic::rdma_queue. @param rings  the present ones
    void modify(rdma_state to, const rdma_connection& how, const pair_rings& rings);
    rdma_state state() const noexcept;
    /// Whether entries that began before SQD are still in flight.
    bool draining() const noexcept;
    roce_verdict receive(const roce_arrival& arrival) override;
    /// Its own address, once it is connected.
    std::optional<claimed_address> claims() const noexcept override;

    unsigned turn(std::uint32_t most) override;
    core::counter turns; ///< turns it has had
    bool idle() const noexcept override;
    bool is_held() const noexcept override;
    bool waits_for_others() const noexcept override { return sends_.waits_for_others(); }
    watched_word wakes_by() const noexcept override { return sends_.wakes_by(); }
    const tx_ring& ring() const noexcept override { return sends_.ring(); }
    /// Deadline of the peer's answer, or of the wait after an RNR NAK. 0 while the answer is expected soon.
    std::uint64_t deadline_ns() const noexcept override;
    bool only_waits() const noexcept override { return deferred_ || waited_ >= turns_waiting; }
    void fall_asleep() noexcept override;
    /// Ends the connection without notifying the peer. Flushes all entries.
    void stop();
    /// As stop(), but reports nothing in completion queues.
    void stop_silently();
    /// Starts again with fresh rings, not connected. @pre stop()
    void restart(const pair_rings& rings);
    rdma_counters counters() const noexcept;
    /// Call it between two turns of the engine.
    rdma_dump dump();
    /// Any thread.
    bool failed() const noexcept { return sends_.failed(); }
    send_events& events() noexcept { return sends_.events(); }
    /// Why responders of this queue pair have ended connections. One reader thread at a time.
    responder_failures& failures() noexcept { return failures_; }
    /// Whether its connection has failed since the last call.
    bool take_failure() noexcept { return std::exchange(newly_failed_, false); }
    /// Addresses of this end and of the peer. @pre connected()
    const net::roce_gid& address() const noexcept { return connection_->path.source; }
    const net::roce_gid& peer() const noexcept { return connection_->path.destination; }
    /// The VLAN of both, or no_vlan. @pre connected()
    std::uint16_t vlan() const noexcept
    {
        return connection_->path.tag_count == 0 ? no_vlan : vlan_of(connection_->path.tags[0].tci);
    }
    /// Number of the peer's queue pair. @pre connected()
    std::uint32_t peer_number() const noexcept { return connection_->responder.settings().peer_queue; }
    /// Whether both are connected to each other, alike.
    bool is_partner_of(const queue_pair& other) const noexcept;
    /// @param at_own_port  packets to the peer do not pass the driver
    /// @param partner      the queue pair of this engine whose partner this is and that may execute requests without
    ///                     packets; nullptr: none
    void set_way_to_peer(bool at_own_port, queue_pair* partner) noexcept
    {
        peer_at_own_port_ = at_own_port;
        partner_ = partner;
    }

 private:
    struct connection {
        connection(const rdma_connection& to, queue_pair& owner);

        void set_path(const rdma_connection& to, std::uint32_t queue);

        net::roce_path path;
        net::roce_front front;                    ///< headers of all packets to the peer
        net::header_address ours, theirs;         ///< destination and source of packets from the peer
        std::optional<roce::requester> requester; ///< empty before RTS
        roce::responder responder;
    };

    bool is_from_peer(const net::packet_headers& headers) const noexcept;
    bool is_to_our_mac(std::span<const std::uint8_t> frame) const noexcept;
    void rest(const pair_rings& rings);
    void allow_sending(const rdma_connection& how);
    bool ends_sends_only() const noexcept;

    void defer() noexcept;
    void recall() noexcept;
    bool has_overrun() const noexcept;
    void end_when_broken();
    bool waits_for_peer() const noexcept;
    bool is_in_a_hurry() const noexcept;
    unsigned exchange(roce::packet_sink& sink, roce::allowance most);
    unsigned request(roce::packet_sink& sink, roce::allowance most);
    void flush_both();
    void take_request(const net::roce_packet& packet);
    void report_responder_failure() noexcept;
    void dump_connection(rdma_dump& into) const;
    void dump_requests(rdma_dump& into);
    void dump_error(rdma_dump& into) const;

    std::uint32_t number() const noexcept { return sends_.ring().entries.queue; }

    const rdma_service service_;
    const keys::window_user as_; ///< whose windows of type 2 its peer may access
    rdma_sends sends_;
    roce::key_memory memory_;
    rdma_receives receives_;
    responder_failures failures_;
    pair_commons& commons_;
    std::optional<connection> connection_;
    rdma_state state_ = rdma_state::init; ///< a failed queue pair is in ERR: see state()
    std::uint32_t waited_ = 0;            ///< consecutive turns in which only an answer could bring work
    unsigned requested_ = 0;              ///< request packets sent in the last turn
    bool deferred_ = false;               ///< it copies within the port: see turn_shares
    bool peer_at_own_port_ = false;
    queue_pair* partner_ = nullptr; ///< see set_way_to_peer()
    bool newly_failed_ = false;
    refusal_counts refused_by_;
    rdma_counters before_; ///< sums of the connections that have ended
};

} // namespace weftio::nic::soft
