// An RDMA address of a port of the software NIC.
#pragma once

#include <chrono>
#include <memory>

#include "nic/rdma_backend.hpp"
#include "nic/soft/soft_port.hpp"

namespace weftio::nic::soft {

class soft_rdma_address final : public held_rdma_address {
 public:
    /// @throws weftio::error errc::in_use the port, or another member of its wire, has the address
    soft_rdma_address(std::shared_ptr<soft_port> port, const rdma_own_address& own);
    ~soft_rdma_address() override;

    std::optional<net::mac_address> known(const net::roce_gid& peer) override;
    std::optional<net::mac_address> resolve(const net::roce_gid& peer, std::chrono::milliseconds patience) override;
    std::optional<bool> has_left(const net::mac_address& host) const override;

 private:
    class open_question;

    void remove();
    using clock = std::chrono::steady_clock;
    std::optional<net::mac_address> ask_once(open_question& question, clock::time_point until);

    const std::shared_ptr<soft_port> port_;
    const rdma_own_address own_;
};

} // namespace weftio::nic::soft
