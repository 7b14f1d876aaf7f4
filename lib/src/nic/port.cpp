#include "weftio/port.hpp"

#include <fmt/format.h>

#include <numeric>

#include "core/signals.hpp"
#include "nic/soft/soft_port.hpp"
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
    if (options.engines < 1 || options.engines > port_options::most_engines)
        throw error(errc::invalid_argument, fmt::format("weftio: port {}: engines is {}; a port has 1 to {}", spec,
                                                        options.engines, port_options::most_engines));
    const detail::undertaking undertaking;
    nic::port_spec parsed = nic::parse_port_spec(spec, options.engines, options.mtu);
    const detail::signals_blocked for_its_threads; // those of EAL and of drivers too
    return port(detail::make_shared_here<nic::soft_port>(std::string(spec), parsed, options));
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

bool port::link_up() const noexcept
{
    return backend_->device().link_up();
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

unsigned port::engines() const noexcept
{
    return backend_->engines().count();
}

namespace {

void check_inline(const port& port)
{
    if (port.backend().engines().have_threads())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: turn() is for inline mode, this port has an engine thread; open "
                                "it with .mode = engine_mode::inline_worker",
                                port.spec()));
}

} // namespace

unsigned port::turn()
{
    check_inline(*this);
    return backend_->engines().turn();
}

unsigned port::turn(unsigned engine)
{
    check_inline(*this);
    backend_->require_engine("port", engine);
    return backend_->engine(engine).turn();
}

} // namespace weftio
