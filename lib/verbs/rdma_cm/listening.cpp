// Who has which port, and which listener a request is for.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "core/log.hpp"
#include "engine/failure.hpp"
#include "rdma_cm/service.hpp"

namespace weftio::verbs::rdma_cm {

namespace {

constexpr std::size_t most_backlog = 1024; // as Linux

/// Whether two identifiers can have the same port.
bool are_apart(const identifier& one, const identifier& other) noexcept
{
    using kind = socket_address::kind;
    if ((one.local.is == kind::infiniband) != (other.local.is == kind::infiniband))
        return true;
    if (one.local.of() != other.local.of() && one.is_family_only() && other.is_family_only())
        return true;
    return !one.local.is_any() && !other.local.is_any() && one.local.gid != other.local.gid;
}

} // namespace

bool service::is_taken_here(const identifier& one) const
{
    return std::ranges::any_of(identifiers_, [&](const auto& each) {
        const identifier& other = each.second;
        return &other != &one && other.space == one.space && other.local.port == one.local.port && !other.passive &&
               !are_apart(one, other) && !(other.reuses_address && one.reuses_address && other.now != phase::listening);
    });
}

std::uint16_t service::free_port(cm::port_space space)
{
    constexpr std::uint16_t first = 32768, count = 28232; // as Linux
    for (unsigned tried = 0; tried != count; ++tried) {
        const auto port = static_cast<std::uint16_t>(first + ++last_port_ % count);
        const bool taken = std::ranges::any_of(identifiers_,
                                               [&](const auto& each) {
                                                   return each.second.space == space && each.second.local.port == port;
                                               }) ||
                           std::ranges::any_of(families, [&](family of) {
                               return ports_.owner(static_cast<std::uint16_t>(space), port, of).has_value();
                           });
        if (!taken)
            return port;
    }
    throw failure{EADDRNOTAVAIL};
}

[[noreturn]] void service::refuse_port(std::uint16_t port, const std::string& owner) const
{
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio-run: rdma_bind_addr: port {} is in use by {}; choose another one, or bind the "
                           "process's own address {}",
                           port, owner, net::text_of(gids_.front().front()));
    });
    throw failure{EADDRINUSE};
}

/// Addresses that all processes of this host have in common have one owner of a port.
void service::claim_port(identifier& one, family of)
{
    const auto at = static_cast<std::size_t>(of);
    const bool is_ours = std::ranges::any_of(identifiers_, [&](const auto& each) {
        return each.second.claimed_of[at] && each.second.space == one.space && each.second.local.port == one.local.port;
    });
    if (is_ours)
        return;
    const auto space = static_cast<std::uint16_t>(one.space);
    one.claimed_of[at] = ports_.claim(space, one.local.port, of, gids_.front().front());
    if (one.claimed_of[at])
        return;
    const auto owner = ports_.owner(space, one.local.port, of);
    refuse_port(one.local.port,
                owner ? fmt::format("the process with the address {}", net::text_of(*owner)) : "another process");
}

/// Takes the port of the local address; the process's own address on the wire is its own. What the identifier has
/// already, it keeps if it needs it.
void service::take_port(identifier& one)
{
    if (one.local.port == 0)
        one.local.port = free_port(one.space);
    if (is_taken_here(one))
        refuse_port(one.local.port, "this process");
    if (!is_common(one.local))
        return;
    for (const family of : families)
        if (one.takes(of))
            claim_port(one, of);
        else
            one.claimed_of[static_cast<std::size_t>(of)].reset();
}

void service::bind(identifier& one, const socket_address& to)
{
    require(one.now == phase::idle, EINVAL);
    if (to.is == socket_address::kind::infiniband) {
        require(to.is_any(), ENODEV);
        one.local = to;
        one.now = phase::bound;
        return;
    }
    if (!to.is_any()) {
        auto place = place_of(to.gid);
        if (!place && (to.is_loopback() || is_of_this_host(to.gid)))
            if (const auto index = gid_of_kind(0, to.gid))
                place.emplace(0, *index);
        require(place.has_value(), EADDRNOTAVAIL);
        use_device(one, place->first, place->second);
    }
    one.local = to;
    try {
        take_port(one);
    } catch (...) {
        one.local = {};
        one.device.reset();
        one.claimed_of = {};
        throw;
    }
    one.now = phase::bound;
}

/// Programs that listen at 0.0.0.0 and at [::] have one listener for each; the first hears what comes to any address.
bool service::has_listener_of_other_family(const identifier& one) const
{
    return std::ranges::any_of(identifiers_, [&](const auto& each) {
        const identifier& other = each.second;
        return other.now == phase::listening && other.space == one.space && other.local.port == one.local.port &&
               other.local.of() != one.local.of();
    });
}

/// @param local  all zero: every address of the device  @return false: another one listens there
/// @throws failure ENOMEM
bool service::listen_at(identifier& one, unsigned device, const net::roce_gid& local)
{
    std::uint32_t number = 0;
    const cm::refusal why = agent_of(device).call([&](cm::manager& at, std::uint64_t) {
        return at.listen(cm::service_of(one.space, one.local.port), local, most_backlog, number);
    });
    if (why == cm::refusal::service_in_use)
        return false;
    require(why == cm::refusal::none, ENOMEM);
    one.listeners.emplace_back(device, number);
    by_listener_[{device, number}] = one.number;
    return true;
}

void service::listen(identifier& one, std::size_t backlog)
{
    if (one.now == phase::idle)
        bind(one, address_of(net::gid_of_ipv4(std::array<std::uint8_t, 4>{}), 0));
    require(one.now == phase::bound, EINVAL);
    if (one.local.is != socket_address::kind::infiniband)
        take_port(one); // AFONLY may have been set since bind()
    const bool is_own = !one.local.is_any() && place_of(one.local.gid);
    const unsigned first = one.device.value_or(0);
    const unsigned end_of = one.device ? first + 1 : static_cast<unsigned>(nodes_.size());
    for (unsigned device = first; device != end_of; ++device) {
        if (!has_listener_of_other_family(one))
            require(listen_at(one, device, is_own ? one.local.gid : net::roce_gid{}), EADDRINUSE);
        else if (is_own)
            listen_at(one, device, one.local.gid);
        else
            for (const net::roce_gid& each : std::set(gids_[device].begin(), gids_[device].end()))
                listen_at(one, device, each); // where the other one listens, it hears for both
    }
    one.backlog = backlog > 0 && backlog < most_backlog ? backlog : most_backlog;
    one.now = phase::listening;
}

/// The listener that has heard a request, or the one of the same port that takes its family. nullptr: there is none.
identifier* service::listener_for(unsigned device, const cm::event& next, family of)
{
    const auto heard = by_listener_.find({device, next.listener});
    if (heard == by_listener_.end())
        return nullptr;
    identifier& first = identifiers_.at(heard->second);
    if (first.takes(of))
        return &first;
    for (auto& each : identifiers_) {
        identifier& other = each.second;
        if (other.now == phase::listening && other.space == first.space && other.local.port == first.local.port &&
            other.takes(of) && (is_common(other.local) || other.local.gid == next.route.local))
            return &other;
    }
    return nullptr;
}

} // namespace weftio::verbs::rdma_cm
