// A port on a wire of the test, behind a fake NIC that executes drop rules.
#pragma once

#include "fake_driver.hpp"
#include "software_nic.hpp"
#include "unit/nic/injected_port.hpp"

namespace weftio::test {

/// Frames meet the driver's rules first, then the port's.
class offload_world {
 public:
    explicit offload_world(port_options options = {.mode = engine_mode::inline_worker}) : wire_(std::move(options)) {}

    const port& get() const { return wire_.get(); }
    injected_port& wire() { return wire_; }
    fake_driver& driver() { return driver_; }
    /// A frame arrives at the NIC.
    void arrive(const bytes& frame, unsigned count = 1)
    {
        for (; count != 0; --count)
            EXPECT_TRUE(driver_.drops(frame) || wire_.send(frame));
        if (software_nic(wire_.get()).is_inline())
            wire_.run_dry();
    }

 private:
    injected_port wire_;
    fake_driver driver_{software_nic(wire_.get()).device().id()};
};

} // namespace weftio::test
