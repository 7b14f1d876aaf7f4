// An Ethernet send queue of the software NIC, as the objects of eth/ use it: finds the engine of the queue.
#pragma once

#include <memory>
#include <string>

#include "nic/soft/at_port.hpp"
#include "nic/soft/work/soft_queue.hpp"

namespace weftio::nic::soft {

class soft_send_queue final : public soft_executed_queue<eth_send_queue, at_port, tx_queue> {
 public:
    /// @param engine  -1: the engine with the fewest send queues, the lowest number if several have as few
    /// @throws weftio::error errc::out_of_memory
    soft_send_queue(std::shared_ptr<soft_port> port, const send_ring& ring, int engine);

    unsigned engine() const noexcept override { return home_; }
    void move_to(unsigned engine) override;
    inline_turn turn() noexcept override;
    void run_turn() const;
    eth_txq_counters counters() const override;
    schedule_error schedule() const override;
    void restart(const send_ring& ring) override;

 private:
    class pausing;

    /// Call it only between two turns of the queue's engine.
    nic::soft::sender& sender() const { return port_->sender(home_); }
    bool try_to_move(unsigned engine);
    std::string progress() const override;
    bool drain() override;
    void remove() noexcept override;
    std::string words_of(const send_event& event) const override;
};

} // namespace weftio::nic::soft
