// A receive queue of the software NIC, as the objects of eth/ use it: finds the engine of the queue.
#pragma once

#include <memory>
#include <string>

#include "nic/soft/at_port.hpp"
#include "nic/soft/work/soft_queue.hpp"

namespace weftio::nic::soft {

class soft_receive_queue final : public soft_queue<receive_queue, at_port, rx_queue> {
 public:
    /// @param engine  -1: the engine with the fewest receive queues, the lowest number if several have as few
    /// @throws weftio::error errc::out_of_memory
    soft_receive_queue(std::shared_ptr<soft_port> port, const receive_ring& ring, int engine);

    unsigned engine() const noexcept override { return home_; }
    void move_to(unsigned engine) override;
    inline_turn turn() noexcept override;
    void run_turn() const;
    eth_rxq_counters counters() const override;
    void restart(const receive_ring& ring) override;

 private:
    rx_ring cpu_ring(const receive_ring& ring) const;

    receive_ring ring_; ///< the present ring; keeps its memory alive
    std::string progress() const override;
    void remove() noexcept override;
};

} // namespace weftio::nic::soft
