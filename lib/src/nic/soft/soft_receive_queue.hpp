// A receive queue of the software NIC, as the objects of eth/ see it: it finds the engine that the queue is at.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

class soft_receive_queue final : public receive_queue {
 public:
    /// @param engine  -1: the engine with the fewest receive queues, the lowest number if several have as few
    /// @throws weftio::error errc::out_of_memory
    soft_receive_queue(std::shared_ptr<soft_port> port, const rx_ring& ring, int engine);

    std::uint32_t number() const noexcept override { return number_; }
    unsigned engine() const noexcept override { return home_; }
    void move_to(unsigned engine) override;
    inline_turn turn() noexcept override;
    std::uint32_t ring_number() const noexcept override { return ring_number_; }
    void stop(std::uint32_t ring) override;
    std::string describe(std::uint32_t ring) const override;
    void close() noexcept override;
    eth_rxq_counters counters() const override;
    void restart(const rx_ring& ring) override;

 private:
    rx_ring filled_in(rx_ring ring) const noexcept;

    const std::shared_ptr<soft_port> port_;
    home home_{0};
    std::uint32_t number_ = 0;
    std::mutex changing_;           ///< held while the queue is restarted or moved
    rx_queue* queue_ = nullptr;     ///< constant until close(), which makes it nullptr
    std::uint32_t ring_number_ = 0; ///< changes only while every engine is between two turns
};

} // namespace weftio::nic::soft
