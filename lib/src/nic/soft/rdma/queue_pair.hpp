// A queue pair with a connection: a send ring and a receive ring, and the connection that executes them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "nic/soft/rdma/any_pair.hpp"
#include "nic/soft/rdma/postponed_requests.hpp"
#include "roce/key_memory.hpp"
#include "roce/requester.hpp"
#include "roce/responder.hpp"

namespace weftio::nic::soft {

/// A queue pair with completion queues begins in RESET, and can be in SQE; any other begins in INIT. Entries wait until
/// the queue pair is in RTS. A failure of one side ends the other, except in SQE: all entries of both rings are
/// flushed. RC answers a refused request with a NAK.
class queue_pair final : public any_pair {
 public:
    /// After so many turns in which it only waited for an answer, a queue pair sleeps until the answer comes, a timeout
    /// expires or an entry is committed. It does not sleep earlier, because an answer is often close.
    static constexpr std::uint32_t turns_waiting = 64;

    /// @param keys, commons  must outlive this
    queue_pair(const pair_rings& rings, rdma_service service, const keys::nic_keys& keys, pair_commons& commons);

    bool connected() const noexcept { return connection_.has_value(); }
    void modify(rdma_state to, const rdma_connection& how, const pair_rings& rings) override;
    bool draining() const noexcept override;
    roce_verdict receive(const roce_arrival& arrival) override;
    /// Its own address, once it is connected.
    std::optional<claimed_address> claims() const noexcept override;

    unsigned turn(std::uint32_t most) override;
    bool idle() const noexcept override;
    bool is_held() const noexcept override;
    /// Deadline of the peer's answer, or of the wait after an RNR NAK. 0 while the answer is expected soon.
    std::uint64_t deadline_ns() const noexcept override;
    bool only_waits() const noexcept override { return deferred_ || waited_ >= turns_waiting; }
    void fall_asleep() noexcept override;
    void stop() override;
    void restart(const pair_rings& rings) override;
    rdma_counters counters() const noexcept override;
    rdma_dump dump() override;
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
    void allow_sending(const rdma_connection& how);
    bool ends_sends_only() const noexcept;

    void defer() noexcept;
    void recall() noexcept;
    void end_when_broken();
    void end_failed_copy();
    bool waits_for_peer() const noexcept;
    bool is_in_a_hurry() const noexcept;
    bool has_much_to_send() const noexcept;
    unsigned turn_of_deferred(std::uint32_t most);
    unsigned exchange(roce::packet_sink& sink, roce::allowance most);
    unsigned request(roce::packet_sink& sink, roce::allowance most);
    void take_request(const net::roce_packet& packet);
    void take_request_behind_copies(const net::roce_packet& packet);
    void take_up_copies();
    void execute_request(const net::roce_packet& packet);
    bool must_wait(const net::roce_packet& request) const noexcept;
    void postpone(const net::roce_packet& request);
    void take_postponed();
    bool has_postponed() const noexcept { return postponed_ && !postponed_->empty(); }
    bool waits_for_copies() const noexcept { return staged_.used() && has_copies_to_wait_for(); }
    bool has_copies_to_wait_for() const noexcept;
    void report_responder_failure() noexcept;
    void dump_connection(rdma_dump& into) const;
    void dump_requests(rdma_dump& into);

    roce::key_memory memory_;
    std::optional<connection> connection_;
    std::uint32_t waited_ = 0; ///< consecutive turns in which only an answer could bring work
    unsigned requested_ = 0;   ///< request packets sent in the last turn
    bool deferred_ = false;    ///< it copies within the port: see turn_shares
    bool peer_at_own_port_ = false;
    queue_pair* partner_ = nullptr;                 ///< see set_way_to_peer()
    std::unique_ptr<postponed_requests> postponed_; ///< nullptr: none ever was
    rdma_counters before_;                          ///< sums of the connections that have ended
};

} // namespace weftio::nic::soft
