#include "weftio/port.hpp"

#include <fmt/format.h>

#include <numeric>

#include "core/signals.hpp"
#include "nic/backend.hpp"
#include "nic/engine_options.hpp"
#include "ports/kinds.hpp"
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

namespace {

/// Refuses option values that no port can have, before anything is opened.
void require_possible(std::string_view spec, const port_options& options)
{
    const std::string who = fmt::format("port {}", spec);
    if (options.engines < 1 || options.engines > port_options::most_engines)
        nic::refuse_option(who, "engines", options.engines,
                           fmt::format("a port has 1 to {}", port_options::most_engines));
    nic::require_engine_options(who, options.core, options.mode, options.idle);
    nic::require_one_of(who, "hold_when_full", options.hold_when_full, port_options::hold::off,
                        "hold::automatic, hold::on, hold::off");
}

} // namespace

port port::open(std::string_view spec, port_options options)
{
    require_possible(spec, options);
    const core::undertaking undertaking;
    const core::signals_blocked for_its_threads; // also for threads of EAL and of drivers
    return port(ports::open_backend(spec, options));
}

const std::string& port::spec() const noexcept
{
    return backend_->spec();
}

const std::string& port::driver() const noexcept
{
    return backend_->driver();
}

port_info port::info() const
{
    return backend_->info();
}

std::array<std::uint8_t, 6> port::mac() const noexcept
{
    return backend_->mac();
}

std::uint16_t port::mtu() const noexcept
{
    return backend_->mtu();
}

bool port::link_up() const noexcept
{
    return backend_->link_up();
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
    return backend_->engine_count();
}

namespace {

void check_inline(const port& port)
{
    if (!detail::internals::backend(port).is_inline())
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: turn() is for inline mode, but this port has an engine thread; open "
                                "it with .mode = engine_mode::inline_worker",
                                port.spec()));
}

} // namespace

unsigned port::turn()
{
    check_inline(*this);
    return backend_->turn();
}

unsigned port::turn(unsigned engine)
{
    check_inline(*this);
    nic::require_engine(*backend_, "port", engine);
    return backend_->turn(engine);
}

nic::backend& detail::internals::backend(const port& port) noexcept
{
    return *port.backend_;
}

const std::shared_ptr<nic::backend>& detail::internals::share(const port& port) noexcept
{
    return port.backend_;
}

port detail::internals::make_port(std::shared_ptr<nic::backend> backend) noexcept
{
    return port(std::move(backend));
}

} // namespace weftio
