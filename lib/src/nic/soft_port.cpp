#include "nic/soft_port.hpp"

#include <fmt/format.h>

#include "core/log.hpp"

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
      device_(spec_, parsed, options), sender_(device_.wire(), keys_, send_pool_),
      receiver_(device_.id(), device_.lending_pool(), holds_when_full(parsed, options), parsed.capture),
      watch_(device_.id(), parsed.interface), engine_(receiver_, sender_, watch_, options, "weftio/" + std::to_string(device_.id()))
{
}

port_counters soft_port::counters() const
{
    port_counters counters;
    receiver_.count(counters);
    counters.driver_missed = device_.missed();
    return counters;
}

void soft_port::forget_key(std::uint32_t key) noexcept
{
    key_entry region;
    engine_.between_turns([&] {
        if (const key_entry* known = keys_.find(key))
            region = *known;
        keys_.remove(key);
    });
    wait_until_unused(region.cpu, region.bytes);
}

void soft_port::wait_until_unused(const std::byte* begin, std::size_t bytes) noexcept
{
    if (!engine_.between_turns_until([&] { return !sender_.uses(begin, bytes); }, std::chrono::seconds(1)))
        detail::log_or_lose(log_level::error, [&] {
            return fmt::format("weftio: port {}: memory of {} bytes at {} is taken away, and the driver still holds frames that lie in it; "
                               "end send queues, or receive what loops back, before buffers",
                               spec_, bytes, static_cast<const void*>(begin));
        });
}

} // namespace weftio::nic
