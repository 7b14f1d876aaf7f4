// A completion queue of the software NIC. All are at the first engine of their port.
#pragma once

#include <cstdint>
#include <memory>

#include "nic/completion_backend.hpp"
#include "nic/soft/at_port.hpp"
#include "nic/soft/work/completion_ring.hpp"

namespace weftio::nic::soft {

class soft_completion_queue final : public completion_queue, at_port {
 public:
    /// @throws weftio::error errc::not_reachable the CPU cannot access the memory; errc::out_of_memory
    soft_completion_queue(std::shared_ptr<soft_port> port, const completion_memory& memory);
    soft_completion_queue(const soft_completion_queue&) = delete;
    soft_completion_queue& operator=(const soft_completion_queue&) = delete;
    ~soft_completion_queue() override;

    std::uint32_t number() const noexcept override { return ring_->number(); }
    bool overrun() const noexcept override { return ring_->overrun(); }
    inline_turn turn() noexcept override;
    ring_end resize(const completion_memory& to) override;

    /// The ring if it belongs to this port, else nullptr.
    completion_ring* at(const soft_port& port) const noexcept { return port_.get() == &port ? ring_ : nullptr; }

 private:
    completion_memory memory_; ///< keeps the memory alive
    completion_ring* ring_ = nullptr;
};

} // namespace weftio::nic::soft
