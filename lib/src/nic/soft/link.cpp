#include "nic/soft/link.hpp"

#include <fmt/format.h>

#include "core/log.hpp"

namespace weftio::nic::soft {

unsigned link::turn(const turn_budget& budget)
{
    if (watch_.has_just_gone(budget.busy))
        lose_port();
    const link_state now{.up = watch_.link_is_up(), .given_up = watch_.link_is_given_up(), .mtu = watch_.mtu()};
    if (now != state_) {
        state_ = now;
        for (unit* each : others_)
            each->link_changed(now);
    }
    return 0;
}

void link::before_change()
{
    if (watch_.has_just_been_removed())
        lose_port();
}

/// The port is gone: flushes all queues and puts them in error, so that no kernel waits for the port.
void link::lose_port()
{
    for (unit* each : others_)
        each->port_lost();
    core::log_or_lose(log_level::error, [&] {
        return fmt::format("weftio: {}: the port is gone: {}; frames not yet sent are flushed; close the port, and "
                           "open it again when the interface is back",
                           name_, watch_.why());
    });
}

} // namespace weftio::nic::soft
