// A queue pair of the software NIC, as the objects of rdma/ use it.
#pragma once

#include <memory>
#include <string>

#include "nic/rdma_backend.hpp"
#include "nic/soft/at_port.hpp"
#include "nic/soft/work/soft_queue.hpp"

namespace weftio::nic::soft {

/// It stays at one engine. With a completion queue, that is the first engine, as it is for all completion queues of the
/// port; else it is the one that had the fewest queue pairs.
class soft_rdma_queue final : public soft_executed_queue<rdma_queue, at_port, any_pair> {
 public:
    /// @pre the port can send
    /// @throws weftio::error errc::out_of_memory
    soft_rdma_queue(std::shared_ptr<soft_port> port, const rdma_rings& rings, rdma_service service);

    inline_turn turn() noexcept override { return turn_of(this); }
    /// Runs both sides: what a kernel waits for arrives through the receiver.
    void run_turn() const { port_->turn(); }
    void restart(const send_ring& ring) override { restart({.send = ring, .receive = receive_}); }
    bool next(send_outcome& outcome) override;
    void modify(rdma_state to, const rdma_connection& how) override;
    standing state() const override;
    void restart(const rdma_rings& rings) override;
    void attach(const net::roce_gid& group) override;
    bool detach(const net::roce_gid& group) override;
    void take_management() override;
    rdma_counters counters() const override;
    std::uint32_t windows() const override;
    rdma_dump dump() const override;
    std::vector<std::uint8_t> trace(const std::string& comment) const override;

 private:
    rdma_unit& unit() const noexcept { return port_->rdma(home_); }
    std::string progress() const override;
    std::string words_of(const send_event& event) const override { return soft::words_of(event); }
    void remove() noexcept override { unit().remove(number_); }

    pair_rings cpu_rings(const rdma_rings& rings) const;
    completions_at cpu_target(const completion_target& target) const;
    linked_receives* cpu_shared(const std::shared_ptr<nic::shared_receives>& shared) const;

    rdma_receive_ring receive_; ///< the present ring; keeps its memory alive
};

} // namespace weftio::nic::soft
