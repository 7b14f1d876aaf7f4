// What becomes of an engine's port, and who has to know: the first unit of its engine.
#pragma once

#include <string>

#include "dpdk/port_watch.hpp"
#include "nic/soft/engine/unit.hpp"
#include "nic/soft/receive/receiver.hpp"
#include "nic/soft/send/sender.hpp"

namespace weftio::nic {

/// Looks whether the device or its interface is still there, up, and as wide as before.
class link final : public unit {
 public:
    /// @param interface  see port_watch
    /// @param name       of the engine, for the log
    link(std::uint16_t port, const std::string& interface, std::string name, receiver& receiver, sender& sender)
        : watch_(port, interface), name_(std::move(name)), receiver_(receiver), sender_(sender)
    {}

    /// Moves nothing.
    unsigned turn(const turn_budget& budget) override;
    /// What changes may ask the driver for things.
    void before_change() override;
    void attend() noexcept override { watch_.attend(); }
    void leave() noexcept override { watch_.leave(); }
    /// Any thread.
    bool gone() const noexcept { return watch_.gone(); }

 private:
    void lose_port();

    port_watch watch_;
    const std::string name_;
    receiver& receiver_;
    sender& sender_;
};

} // namespace weftio::nic
