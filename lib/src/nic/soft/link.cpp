#include "nic/soft/link.hpp"

#include <fmt/format.h>

#include "core/log.hpp"

namespace weftio::nic::soft {

unsigned link::turn(const turn_budget& budget)
{
    if (watch_.has_just_gone(budget.busy))
        lose_port();
    if (watch_.mtu_has_changed())
        sender_.limit_mtu(watch_.mtu());
    sender_.set_link(watch_.link_is_up()         ? sender::link_state::up
                     : watch_.link_is_given_up() ? sender::link_state::given_up
                                                 : sender::link_state::down);
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
    sender_.lose_port();
    receiver_.lose_port();
    rdma_.lose_port();
    core::log_or_lose(log_level::error, [&] {
        return fmt::format("weftio: {}: the port has gone, its device or its interface was removed; what was to be "
                           "sent is flushed; close the port, and open it again when the interface is back",
                           name_);
    });
}

} // namespace weftio::nic::soft
