// A queue pair without a connection: each entry names its peer, and any peer that has the Q_Key may send to it (UD).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "nic/soft/rdma/any_pair.hpp"
#include "nic/soft/rdma/datagram_route.hpp"

namespace weftio::nic::soft {

/// Has completion queues, and begins in RESET. A message is one packet; it is done when it is sent. Nothing is
/// acknowledged and nothing is repeated.
///
/// A datagram that this queue pair does not accept is dropped and counted, and has no further effect. One that is
/// longer than its receive, or whose receive names bad memory, fails the queue pair, as a ConnectX does.
class datagram_pair final : public any_pair {
 public:
    /// @param directory  of the port; must outlive this, as must `keys` and `commons`
    datagram_pair(const pair_rings& rings, const keys::nic_keys& keys, pair_commons& commons,
                  roce_directory& directory);

    void modify(rdma_state to, const rdma_connection& how, const pair_rings& rings) override;
    bool draining() const noexcept override { return state_ == rdma_state::send_queue_drained && begun_; }
    roce_verdict receive(const roce_arrival& arrival) override;
    /// Nothing: the port claims packets to its own addresses anyway.
    std::optional<claimed_address> claims() const noexcept override { return std::nullopt; }

    unsigned turn(std::uint32_t most) override;
    bool idle() const noexcept override { return sends_.idle() && !waits_for_copies(); }
    bool is_held() const noexcept override { return sends_.is_held(); }
    /// From now on its packets say that they are from the queue pair of management.
    void take_management() noexcept { source_ = roce_directory::number_of_management; }
    void stop() override;
    void restart(const pair_rings& rings) override;
    rdma_counters counters() const noexcept override;
    rdma_dump dump() override;

 private:
    /// The first bytes of a receive: the place of a GRH (IBTA 8.3), which has an IP header.
    static constexpr std::uint32_t header_bytes = 40;

    bool may_receive() const noexcept;
    bool is_to_our_mac(const roce_arrival& arrival) const noexcept;
    bool is_datagram_for_us(const roce_arrival& arrival) const noexcept;
    void accept(const roce_arrival& arrival);
    void note_mac(const roce_arrival& arrival);
    refusal fill(const roce_arrival& arrival);

    bool begin();
    unsigned send_all(roce::allowance most);
    bool send();
    bool put(bool to_own);
    void end(refusal result);
    void end_when_broken();
    void end_failed_copy();

    roce_directory& directory_;
    roce::roce_connection settings_; ///< Q_Key, partition and path MTU
    std::vector<rdma_own_address> sources_;
    datagram_route route_;
    roce::message current_{};    ///< the entry that is being sent
    bool begun_ = false;         ///< there is one
    bool own_copy_sent_ = false; ///< of the current message, to this port
    std::uint32_t psn_ = 0;      ///< of the next packet
    std::uint32_t source_;       ///< number of this queue pair in packets
    core::counter requests_, executed_, not_ready_, refused_, ignored_, packets_;
};

} // namespace weftio::nic::soft
