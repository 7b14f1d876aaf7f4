// A shared receive queue of the software NIC. As completion queues, it is at the first engine of its port.
#pragma once

#include <memory>

#include "nic/rdma_backend.hpp"
#include "nic/soft/at_port.hpp"
#include "nic/soft/rdma/linked_receives.hpp"

namespace weftio::nic::soft {

class soft_shared_receives final : public nic::shared_receives, at_port {
 public:
    /// @throws weftio::error errc::not_reachable the CPU cannot access the memory; errc::out_of_memory
    soft_shared_receives(std::shared_ptr<soft_port> port, const shared_receive_ring& ring);

    std::uint32_t number() const noexcept override { return number_; }
    void set_limit(std::uint32_t limit) override;
    shared_receives_standing standing() const override;

    /// The entries if they belong to this port, else nullptr.
    linked_receives* at(const soft_port& port) noexcept { return port_.get() == &port ? &entries_ : nullptr; }

 private:
    const shared_receive_ring ring_; ///< keeps the memory alive
    const std::uint32_t number_;
    linked_receives entries_;
};

} // namespace weftio::nic::soft
