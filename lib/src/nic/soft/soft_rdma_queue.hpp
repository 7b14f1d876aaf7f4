// A queue pair of the software NIC, as the objects of rdma/ see it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nic/rdma_backend.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

class soft_rdma_queue final : public rdma_queue {
 public:
    /// @pre the port has one engine, and sends
    /// @throws weftio::error errc::out_of_memory
    soft_rdma_queue(std::shared_ptr<soft_port> port, const rdma_rings& rings);

    std::uint32_t number() const noexcept override { return number_; }
    inline_turn turn() noexcept override;
    std::uint32_t ring_number() const noexcept override { return ring_number_; }
    void stop(std::uint32_t ring) override;
    std::string describe(std::uint32_t ring) const override;
    void close() noexcept override;
    bool failed() const override;
    void stop_sending() override;
    void restart(const tx_ring& ring) override;
    bool next(send_outcome& outcome) override;
    void connect(const rdma_connection& to) override;
    void restart(const rdma_rings& rings) override;
    rdma_counters counters() const override;

 private:
    const std::shared_ptr<soft_port> port_;
    std::uint32_t number_ = 0;
    queue_pair* queue_ = nullptr;   ///< constant until close(), which makes it nullptr
    rdma_receive_ring receive_;     ///< the present one
    std::uint32_t ring_number_ = 0; ///< changes only between two turns of the engine
};

} // namespace weftio::nic::soft
