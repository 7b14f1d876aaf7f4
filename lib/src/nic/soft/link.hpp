// The first unit of an engine: watches the port, and notifies the other units when the port changes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dpdk/port_watch.hpp"
#include "nic/soft/engine/unit.hpp"

namespace weftio::nic::soft {

/// Checks whether the device and its interface are still there, whether the link is up, and which MTU it has.
class link final : public unit {
 public:
    /// @param interface, hook  see port_watch
    /// @param name       name of the engine, for the log
    /// @param others     units to notify; they must outlive this
    link(std::uint16_t port, const std::string& interface, dpdk::xdp_hook* hook, std::string name,
         std::vector<unit*> others)
        : watch_(port, interface, hook), name_(std::move(name)), others_(std::move(others))
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
    const std::vector<unit*> others_;
    link_state state_{}; ///< state last reported to the other units
};

} // namespace weftio::nic::soft
