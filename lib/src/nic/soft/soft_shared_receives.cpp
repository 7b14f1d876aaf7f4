#include "nic/soft/soft_shared_receives.hpp"

#include <atomic>
#include <utility>

namespace weftio::nic::soft {

namespace {

std::uint32_t next_number() noexcept
{
    static std::atomic<std::uint32_t> last{0};
    return ++last & 0xffffff;
}

shared_rx_ring cpu_ring(const shared_receive_ring& ring)
{
    require_cpu(ring.entries, "shared_receives");
    require_cpu(ring.dbrec, "shared_receives");
    return {.words = ring.entries.cpu<std::uint32_t>(),
            .dbrec = ring.dbrec.cpu<std::uint32_t>(),
            .depth = ring.depth,
            .segments = ring.segments,
            .domain = ring.domain};
}

} // namespace

soft_shared_receives::soft_shared_receives(std::shared_ptr<soft_port> port, const shared_receive_ring& ring)
    : at_port(std::move(port)), ring_(ring), number_(next_number()), entries_(cpu_ring(ring))
{}

void soft_shared_receives::set_limit(std::uint32_t limit)
{
    between_turns([&] { entries_.set_limit(limit); });
}

shared_receives_standing soft_shared_receives::standing() const
{
    shared_receives_standing now;
    between_turns([&] {
        now = {.waiting = entries_.waiting(),
               .limit = entries_.limit(),
               .limits_reached = entries_.limit_reached.value(),
               .broken = entries_.is_broken()};
    });
    return now;
}

} // namespace weftio::nic::soft
