// An Ethernet send queue of the software NIC, as the objects of eth/ see it: it finds the engine that the queue is at.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

class soft_send_queue final : public eth_send_queue {
 public:
    /// @param engine  -1: the engine with the fewest send queues, the lowest number if several have as few
    /// @throws weftio::error errc::out_of_memory
    soft_send_queue(std::shared_ptr<soft_port> port, const tx_ring& ring, int engine);

    std::uint32_t number() const noexcept override { return number_; }
    unsigned engine() const noexcept override { return home_; }
    void move_to(unsigned engine) override;
    inline_turn turn() noexcept override;
    std::uint32_t ring_number() const noexcept override { return ring_number_; }
    void stop(std::uint32_t ring) override;
    std::string describe(std::uint32_t ring) const override;
    void close() noexcept override;
    eth_txq_counters counters() const override;
    schedule_error schedule() const override;
    bool failed() const override;
    void stop_sending() override;
    void restart(const tx_ring& ring) override;
    bool next(send_outcome& outcome) override;

 private:
    class pausing;

    /// Call it only between two turns of the engine that the queue is at.
    nic::soft::sender& sender() const { return port_->sender(home_); }
    void turn_of_a_push() const;
    bool drain() const;
    bool try_to_move(unsigned engine);
    std::string words_of(const send_event& event) const;

    const std::shared_ptr<soft_port> port_;
    home home_{0};
    std::uint32_t number_ = 0;
    std::mutex changing_;           ///< held while the queue is restarted or moved
    tx_queue* queue_ = nullptr;     ///< constant until close(), which makes it nullptr
    std::uint32_t ring_number_ = 0; ///< changes only between two turns of the engine that the queue is at
};

} // namespace weftio::nic::soft
