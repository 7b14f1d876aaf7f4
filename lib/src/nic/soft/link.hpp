// The first unit of an engine: it watches the port, and tells the other units when the port changes.
#pragma once

#include <string>

#include "dpdk/port_watch.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/rdma/rdma_unit.hpp"
#include "nic/soft/receive/receiver.hpp"
#include "nic/soft/send/sender.hpp"

namespace weftio::nic::soft {

/// Checks whether the device and its interface are still there, whether the link is up, and which MTU it has.
class link final : public unit {
 public:
    /// @param interface  see port_watch
    /// @param name       name of the engine, for the log
    link(std::uint16_t port, const std::string& interface, std::string name, receiver& receiver, sender& sender,
         rdma_unit& rdma)
        : watch_(port, interface), name_(std::move(name)), receiver_(receiver), sender_(sender), rdma_(rdma)
    {}

    /// Returns 0: a link moves nothing.
    unsigned turn(const turn_budget& budget) override;
    /// Detects a removed device before a change, because a change may call the driver.
    void before_change() override;
    void attend() noexcept override { watch_.attend(); }
    void leave() noexcept override { watch_.leave(); }
    /// Any thread.
    bool gone() const noexcept { return watch_.gone(); }

 private:
    void lose_port();

    dpdk::port_watch watch_;
    const std::string name_;
    receiver& receiver_;
    sender& sender_;
    rdma_unit& rdma_;
};

} // namespace weftio::nic::soft
