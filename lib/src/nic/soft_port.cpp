#include "nic/soft_port.hpp"

#include <rte_ethdev.h>

#include "core/environment.hpp"

namespace weftio::nic {

namespace {

bool holds_when_full(const port_spec& parsed, const port_options& options)
{
    if (options.hold_when_full == port_options::hold::automatic)
        return !parsed.capture.empty();
    return options.hold_when_full == port_options::hold::on;
}

} // namespace

soft_port::soft_port(std::string spec, const port_spec& parsed, const port_options& options)
    : spec_(std::move(spec)), lock_(parsed.interface.empty() ? interface_lock() : interface_lock(spec_, parsed.interface)),
      device_(spec_, parsed, options), sender_(device_.wire(), keys_),
      receiver_(device_.id(), holds_when_full(parsed, options), parsed.capture),
      engine_(receiver_, sender_, options, "weftio/" + std::to_string(device_.id()))
{
}

port_counters soft_port::counters() const
{
    port_counters counters;
    receiver_.count(counters);
    counters.driver_missed = device_.missed();
    return counters;
}

} // namespace weftio::nic
