#include "rdma_cm/service.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "core/log.hpp"
#include "engine/failure.hpp"
#include "net/roce_rules.hpp"
#include "rdma/rdma_end.hpp"
#include "rdma_cm/event_values.hpp"

namespace weftio::verbs::rdma_cm {

namespace {

std::vector<std::vector<net::roce_gid>> gids_of(const std::deque<node>& nodes)
{
    std::vector<std::vector<net::roce_gid>> all;
    for (const node& each : nodes) {
        all.emplace_back();
        for (const std::string& text : each.rdma.gids())
            all.back().push_back(rdma::address_of_host(text).value_or(net::roce_gid{}));
    }
    return all;
}

/// What processes have in common that reach each other by the addresses of this host: a wire in memory, which one user
/// has, or an interface of a network namespace, which users share.
std::string wire_of(const node& first)
{
    if (!first.wire.empty())
        return fmt::format("wire-{}-{}", first.user, first.wire);
    std::array<char, 64> space{};
    static_cast<void>(!readlink("/proc/self/ns/net", space.data(), space.size() - 1));
    return fmt::format("{}-{}", first.port.spec(), space.data());
}

bool is_link_local(const net::roce_gid& gid) noexcept
{
    return gid[0] == 0xfe && (gid[1] & 0xc0) == 0x80;
}

} // namespace

const char* name_of(phase of) noexcept
{
    switch (of) {
        case phase::idle: return "idle";
        case phase::bound: return "bound";
        case phase::resolving: return "waits for the MAC of the peer";
        case phase::resolved: return "address resolved";
        case phase::routed: return "route resolved";
        case phase::listening: return "listening";
        case phase::connecting: return "connecting";
        case phase::connected: return "connected";
        case phase::ended: break;
    }
    return "ended";
}

service::service(std::deque<node>& nodes)
    : nodes_(nodes), gids_(gids_of(nodes)), agents_(nodes.size()), ports_(wire_of(nodes.front()))
{
    last_port_ = static_cast<std::uint16_t>(std::random_device()());
}

/// Agents end without the mutex: their threads may wait for it.
service::~service()
{
    agents_.clear();
}

std::shared_ptr<open_file> service::open(int flags)
{
    return std::make_shared<file>(*this, flags);
}

connections::agent& service::agent_of(unsigned device)
{
    std::unique_ptr<connections::agent>& made = agents_[device];
    if (!made)
        made = std::make_unique<connections::agent>(nodes_[device].port, nodes_[device].rdma,
                                                    [this, device](const cm::event& next) { take(device, next); });
    return *made;
}

identifier& service::add(file* in)
{
    do
        ++last_number_;
    while (identifiers_.contains(last_number_) || memberships_.contains(last_number_));
    identifier& made = identifiers_[last_number_];
    made.number = last_number_;
    made.in = in;
    made.first_psn = std::random_device()() & net::psn_mask;
    return made;
}

std::uint32_t service::create(file& in, std::uint64_t user_handle, cm::port_space space, bool datagrams)
{
    identifier& made = add(&in);
    made.user_handle = user_handle;
    made.space = space;
    made.datagrams = datagrams;
    return made.number;
}

identifier& service::find(const file& in, std::uint32_t number)
{
    const auto found = identifiers_.find(number);
    require(found != identifiers_.end(), ENOENT);
    require(found->second.in == &in, EINVAL);
    return found->second;
}

/// Ends what the identifier stands for. The peer is told what it must know.
void service::end(identifier& one)
{
    for (const at_node& each : one.listeners) {
        agent_of(each.first).call([&](cm::manager& at, std::uint64_t now) {
            return at.stop_listening(each.second, now);
        });
        by_listener_.erase(each);
    }
    if (one.connection) {
        agent_of(*one.device).call([&](cm::manager& at, std::uint64_t now) {
            return at.destroy(*one.connection, now);
        });
        by_connection_.erase({*one.device, *one.connection});
    }
    for (const std::uint32_t group : one.groups)
        memberships_.erase(group);
}

void service::forget(file& closed) noexcept
{
    const std::scoped_lock lock(mutex);
    for (auto each = identifiers_.begin(); each != identifiers_.end();) {
        if (each->second.in == &closed) {
            end(each->second);
            each = identifiers_.erase(each);
        } else {
            ++each;
        }
    }
}

/// Unread events of the identifier and its groups are lost, and requests in them refused.
void service::forget_unread(file& in, int number, std::uint32_t which)
{
    const std::set<std::uint32_t>& groups = identifiers_.at(which).groups;
    const auto lost = in.take_if(number, [&](const waiting_event& each) {
        return each.of_group ? groups.contains(each.about) : each.about == which;
    });
    for (const waiting_event& each : lost)
        if (const auto request = identifiers_.find(each.new_identifier); request != identifiers_.end()) {
            end(request->second);
            identifiers_.erase(request);
        }
}

std::uint32_t service::destroy(file& in, int number, std::uint32_t which)
{
    identifier& one = find(in, which);
    forget_unread(in, number, which);
    const std::uint32_t reported = one.events_reported;
    end(one);
    identifiers_.erase(which);
    return reported;
}

std::uint32_t service::migrate(file& to, int from_number, std::uint32_t which)
{
    const auto found = identifiers_.find(which);
    require(found != identifiers_.end(), ENOENT);
    identifier& one = found->second;
    require(identity_of(from_number) == one.in->identity(), EINVAL);
    if (one.in == &to)
        return one.events_reported;
    const auto unread = one.in->take_if(from_number, [&](const waiting_event& each) {
        return each.of_group ? one.groups.contains(each.about) : each.about == which;
    });
    one.in = &to;
    for (const waiting_event& each : unread) {
        if (const auto request = identifiers_.find(each.new_identifier); request != identifiers_.end())
            request->second.in = &to;
        to.push(each);
    }
    return one.events_reported;
}

void service::note_delivered(const waiting_event& event)
{
    if (event.of_group) {
        if (const auto found = memberships_.find(event.about); found != memberships_.end())
            ++found->second.events_reported;
        return;
    }
    identifier& about = identifiers_.at(event.about);
    ++about.events_reported;
    if (event.new_identifier != 0)
        --about.undelivered;
}

std::string service::show()
{
    const std::scoped_lock lock(mutex);
    std::string text;
    for (const auto& each : identifiers_) {
        const identifier& one = each.second;
        text += fmt::format("connection manager: identifier {}: {}, local {}", one.number, name_of(one.now),
                            one.local.text());
        if (one.remote.is != socket_address::kind::none)
            text += fmt::format(", peer {}", one.remote.text());
        if (one.connection) {
            const auto state = agent_of(*one.device).call([&](cm::manager& at, std::uint64_t) {
                return at.state_of(*one.connection);
            });
            text += fmt::format(", {}", state ? cm::name_of(*state) : "gone");
        }
        if (one.now == phase::listening)
            text += fmt::format(", {} requests unread, backlog {}", one.undelivered, one.backlog);
        text += '\n';
    }
    return text;
}

std::optional<std::pair<unsigned, unsigned>> service::place_of(const net::roce_gid& local) const
{
    for (unsigned device = 0; device != gids_.size(); ++device)
        for (unsigned index = 0; index != gids_[device].size(); ++index)
            if (gids_[device][index] == local)
                return std::pair(device, index);
    return std::nullopt;
}

/// The device's address by which it speaks to such an address.
std::optional<unsigned> service::gid_of_kind(unsigned device, const net::roce_gid& like) const
{
    std::optional<unsigned> second_best;
    for (unsigned index = 0; index != gids_[device].size(); ++index) {
        const net::roce_gid& ours = gids_[device][index];
        if (net::is_ipv4(ours) != net::is_ipv4(like))
            continue;
        if (net::is_ipv4(like) || is_link_local(ours) == is_link_local(like))
            return index;
        second_best = second_best.value_or(index);
    }
    return second_best;
}

void service::use_device(identifier& one, unsigned device, unsigned gid_index)
{
    one.device = device;
    one.gid_index = gid_index;
    one.route.local = gids_[device][gid_index];
}

/// The device that was bound, or the first that has an address of the peer's kind.
void service::choose_device(identifier& one, const net::roce_gid& peer)
{
    for (unsigned device = 0; device != nodes_.size() && !one.device; ++device)
        if (const auto index = gid_of_kind(device, peer))
            use_device(one, device, *index);
    require(one.device.has_value() && net::is_ipv4(one.route.local) == net::is_ipv4(peer), ENETUNREACH);
    one.route.peer = peer;
}

/// The loopback address and those of this host's interfaces stand for whichever process on the wire has the port.
bool service::is_common(const socket_address& of) const
{
    return of.is_any() || of.is_loopback() || (!place_of(of.gid) && is_of_this_host(of.gid));
}

net::roce_gid service::reachable(const identifier& one, const socket_address& to) const
{
    if (!is_common(to))
        return to.gid;
    if (const auto owner = ports_.owner(static_cast<std::uint16_t>(one.space), to.port, to.of()))
        return *owner;
    const unsigned device = one.device.value_or(0);
    return gids_[device][one.device ? one.gid_index : gid_of_kind(device, to.gid).value_or(0)];
}

/// The address that the program has by then. Of a peer in IPv6 it is one, too, also where the wire has IPv4.
socket_address service::local_for(const identifier& one)
{
    if (one.remote.of() == family_of(one.route.peer))
        return address_of(one.route.local, one.local.port);
    return address_of(one.remote.is_any() ? ipv6_loopback : one.remote.gid, one.local.port);
}

void service::resolve_address(identifier& one, const std::optional<socket_address>& from, const socket_address& to,
                              std::chrono::milliseconds timeout)
{
    require(one.now == phase::idle || one.now == phase::bound, EINVAL);
    require(to.is != socket_address::kind::infiniband, ENODEV);
    if (one.now == phase::idle && from && !(from->is_any() && from->port == 0))
        bind(one, *from);
    choose_device(one, reachable(one, to));
    agent_of(*one.device);
    if (one.local.port == 0)
        one.local.port = free_port(one.space);
    one.remote = to;
    if (one.local.is == socket_address::kind::none || one.local.is_any())
        one.local = local_for(one);
    one.now = phase::resolving;
    constexpr std::chrono::hours endless{24 * 365};
    one.resolve_until = std::chrono::steady_clock::now() + (timeout.count() < 0 ? endless : timeout);
    if (!ask_for_peer(one)) {
        one.now = phase::bound;
        throw failure{EAGAIN};
    }
}

void service::resolve_route(identifier& one)
{
    require(one.now == phase::resolved, EINVAL);
    one.now = phase::routed;
    rdma_ucm_event_resp says{};
    says.event = route_resolved;
    tell(one, says);
}

} // namespace weftio::verbs::rdma_cm
