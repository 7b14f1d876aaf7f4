#include "weftio/port.hpp"

#include <fmt/format.h>

#include <numeric>

#include "nic/soft_port.hpp"
#include "weftio/error.hpp"

namespace weftio {

const char* to_string(drop_reason reason) noexcept
{
    switch (reason) {
    case drop_reason::no_match: return "no_match";
    case drop_reason::dropped_by_flow: return "dropped_by_flow";
    case drop_reason::out_of_buffer: return "out_of_buffer";
    case drop_reason::too_long: return "too_long";
    case drop_reason::runt: return "runt";
    case drop_reason::queue_closed: return "queue_closed";
    case drop_reason::count_: break;
    }
    return "unknown";
}

std::uint64_t port_counters::dropped_total() const noexcept
{
    return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0});
}

port port::open(std::string_view spec, port_options options)
{
    nic::port_spec parsed = nic::parse_port_spec(spec);
    return port(std::make_shared<nic::soft_port>(std::string(spec), parsed, options));
}

const std::string& port::spec() const noexcept
{
    return backend_->spec();
}

const std::string& port::driver() const noexcept
{
    return backend_->device().driver();
}

std::array<std::uint8_t, 6> port::mac() const noexcept
{
    return backend_->device().mac();
}

std::uint16_t port::mtu() const noexcept
{
    return backend_->device().mtu();
}

port_counters port::counters() const
{
    return backend_->counters();
}

bool port::exhausted() const noexcept
{
    return backend_->exhausted();
}

bool port::gone() const noexcept
{
    return backend_->gone();
}

unsigned port::turn()
{
    if (backend_->engine().has_thread())
        throw error(errc::invalid_argument, fmt::format("weftio: port {}: turn() is for inline mode, this port has an engine thread; open "
                                                        "it with .mode = engine_mode::inline_worker",
                                                        spec()));
    return backend_->engine().turn();
}

} // namespace weftio
