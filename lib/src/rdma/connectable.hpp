// An rdma_queue as a connection manager sees it.
#pragma once

#include <cstdint>
#include <memory>

#include "nic/rdma_backend.hpp"
#include "rdma/rdma_device.hpp"
#include "weftio/queue_pair.hpp"

namespace weftio::rdma {

/// Threads: as the rdma_queue; fail() from any.
class connectable {
 public:
    virtual const local_addresses& addresses() const noexcept = 0;
    virtual std::uint32_t queue_number() const noexcept = 0;
    virtual rdma_service service() const noexcept = 0;
    /// What the options of the queue ask for.
    virtual const nic::rdma_connection& wanted() const noexcept = 0;
    /// @throws weftio::error errc::invalid_argument it has no connection (UD), or is not in RESET or INIT
    virtual void require_unconnected() = 0;
    /// From RESET or INIT to RTS. @throws weftio::error as rdma_queue::connect()
    virtual void connect(const queue_pair_attributes& agreed) = 0;
    /// To ERR.
    virtual void fail() = 0;

 protected:
    connectable() = default;
    ~connectable() = default;
};

/// Keeps the queue pair.
std::shared_ptr<connectable> connectable_of(const rdma_queue& queue) noexcept;

} // namespace weftio::rdma
