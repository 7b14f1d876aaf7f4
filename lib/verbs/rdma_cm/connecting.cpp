// How identifiers connect: what programs ask for, and what peers and the manager answer.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "core/log.hpp"
#include "engine/failure.hpp"
#include "net/neighbor_messages.hpp"
#include "net/roce_rules.hpp"
#include "rdma_cm/event_values.hpp"
#include "rdma_cm/service.hpp"

namespace weftio::verbs::rdma_cm {

namespace {

/// As the kernel answers.
void require_accepted(cm::refusal why)
{
    require(why == cm::refusal::none, why == cm::refusal::no_room ? ENOMEM : EINVAL);
}

std::span<const std::uint8_t> data_of(const rdma_ucm_conn_param& with, std::size_t most)
{
    require(with.private_data_len <= most, EINVAL);
    return std::span(with.private_data).first(with.private_data_len);
}

cm::proposal proposal_of(const identifier& one, const rdma_ucm_conn_param& with)
{
    return {.queue = with.qp_num & 0xffffff,
            .first_psn = one.first_psn,
            .responder_resources = with.responder_resources,
            .initiator_depth = with.initiator_depth,
            .retry_count = std::min<std::uint8_t>(with.retry_count, 7),
            .rnr_retry_count = std::min<std::uint8_t>(with.rnr_retry_count, 7),
            .flow_control = with.flow_control != 0,
            .shared_receives = with.srq != 0};
}

template <class Bytes>
void copy_data(const Bytes& from, std::size_t behind, std::uint8_t (&to)[RDMA_MAX_PRIVATE_DATA], std::uint8_t& length)
{
    length = static_cast<std::uint8_t>(std::min<std::size_t>(from.size() - behind, RDMA_MAX_PRIVATE_DATA - 1));
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(behind), length, to);
}

rdma_ucm_event_resp event_of(event_code code, int status = 0)
{
    rdma_ucm_event_resp says{};
    says.event = code;
    says.status = static_cast<std::uint32_t>(status);
    return says;
}

/// The peer's proposal, in the place of what this end would propose.
rdma_ucm_event_resp event_of_request(const cm::req& request)
{
    rdma_ucm_event_resp says = event_of(connect_request);
    rdma_ucm_conn_param& to = says.param.conn;
    to.qp_num = request.queue;
    to.responder_resources = request.initiator_depth;
    to.initiator_depth = request.responder_resources;
    to.flow_control = request.flow_control;
    to.retry_count = request.retry_count;
    to.rnr_retry_count = request.rnr_retry_count;
    to.srq = request.shared_receives;
    copy_data(request.data, cm::ip_header::bytes, to.private_data, to.private_data_len);
    return says;
}

rdma_ucm_event_resp event_of_reply(const cm::rep& reply)
{
    rdma_ucm_event_resp says = event_of(connect_response);
    rdma_ucm_conn_param& to = says.param.conn;
    to.qp_num = reply.queue;
    to.responder_resources = reply.initiator_depth;
    to.initiator_depth = reply.responder_resources;
    to.flow_control = reply.flow_control;
    to.rnr_retry_count = reply.rnr_retry_count;
    to.srq = reply.shared_receives;
    copy_data(reply.data, 0, to.private_data, to.private_data_len);
    return says;
}

rdma_ucm_event_resp event_of_rejection(const cm::rej& rejection)
{
    rdma_ucm_event_resp says = event_of(rejected, static_cast<int>(rejection.reason));
    copy_data(rejection.data, 0, says.param.conn.private_data, says.param.conn.private_data_len);
    return says;
}

/// The service of datagrams has told its queue pair, or why it does not.
rdma_ucm_event_resp event_of_service(const identifier& one, const cm::sidr_rep& reply)
{
    rdma_ucm_event_resp says = event_of(established);
    if (reply.status != cm::service_status::valid)
        return event_of(unreachable, static_cast<int>(reply.status));
    rdma_ucm_ud_param& to = says.param.ud;
    to.qp_num = reply.queue;
    to.qkey = reply.queue_key;
    to.ah_attr = address_handle(one, one.route.peer);
    copy_data(reply.data, 0, to.private_data, to.private_data_len);
    return says;
}

rdma_ucm_event_resp event_of_service_request(const identifier& one, const cm::sidr_req& request)
{
    rdma_ucm_event_resp says = event_of(connect_request);
    says.param.ud.ah_attr = address_handle(one, one.route.peer);
    copy_data(request.data, cm::ip_header::bytes, says.param.ud.private_data, says.param.ud.private_data_len);
    return says;
}

} // namespace

void service::tell(identifier& one, rdma_ucm_event_resp says, identifier* about)
{
    if (one.passive && !one.accepted && says.event != connect_request)
        return; // the program does not know it yet; accepting it will fail
    identifier& counts = about ? *about : one;
    says.uid = counts.user_handle;
    says.id = one.number;
    one.in->push({.says = says, .about = counts.number, .new_identifier = about ? one.number : 0});
}

/// Asks for a second at most: others may wait for their turn.
bool service::ask_for_peer(identifier& one)
{
    using namespace std::chrono;
    const auto left = ceil<milliseconds>(one.resolve_until - steady_clock::now());
    return agents_[*one.device]->resolve(
        one.route, [this, which = one.number](bool reachable) { found(which, reachable); },
        std::clamp(left, milliseconds(0), milliseconds(1000)));
}

void service::found(std::uint32_t which, bool reachable)
{
    const std::scoped_lock lock(mutex);
    const auto known = identifiers_.find(which);
    if (known == identifiers_.end() || known->second.now != phase::resolving)
        return;
    identifier& one = known->second;
    if (!reachable && std::chrono::steady_clock::now() < one.resolve_until && ask_for_peer(one))
        return;
    one.now = reachable ? phase::resolved : phase::bound;
    tell(one, reachable ? event_of(address_resolved) : event_of(address_error, -ETIMEDOUT));
}

void service::connect(identifier& one, const rdma_ucm_conn_param& with)
{
    require(one.now == phase::routed, EINVAL);
    require(with.private_data_len <= (one.datagrams ? cm::most_resolve_data : cm::most_request_data), EINVAL);
    if (!is_common(one.remote))
        return begin(one, with);
    one.asked = with;
    const cm::path own{.local = one.route.local, .peer = one.route.local}; // the peer that was resolved may be no more
    require(agent_of(*one.device).resolve(own, [this, which = one.number](bool) { find_owner(which); }), EAGAIN);
    one.now = phase::connecting;
}

void service::begin(identifier& one, const rdma_ucm_conn_param& with)
{
    if (one.datagrams)
        begin_resolution(one, with);
    else
        begin_connection(one, with);
    by_connection_[{*one.device, *one.connection}] = one.number;
    one.now = phase::connecting;
}

/// The process with the peer's port may have changed since the address was resolved, or is about to take it: a server
/// that has told its client to connect may still be on its way to listen.
void service::find_owner(std::uint32_t which)
{
    constexpr auto patience = std::chrono::milliseconds(200), pause = std::chrono::milliseconds(2);
    const auto end = std::chrono::steady_clock::now() + patience;
    for (;; std::this_thread::sleep_for(pause)) {
        const std::scoped_lock lock(mutex);
        const auto known = identifiers_.find(which);
        if (known == identifiers_.end() || !known->second.asked)
            return;
        identifier& one = known->second;
        if (!ports_.owner(static_cast<std::uint16_t>(one.space), one.remote.port, one.remote.of()) &&
            std::chrono::steady_clock::now() < end)
            continue;
        one.route.peer = reachable(one, one.remote);
        const auto local = gid_of_kind(*one.device, one.route.peer);
        if (local && net::is_ipv4(one.route.local) != net::is_ipv4(one.route.peer))
            use_device(one, *one.device, *local); // the owner of a port of ::1 may have an address of IPv4
        if (!agent_of(*one.device).resolve(one.route, [this, which](bool found) { begin_late(which, found); }))
            tell(one, event_of(unreachable, -EAGAIN));
        return;
    }
}

void service::begin_late(std::uint32_t which, bool reachable)
{
    const std::scoped_lock lock(mutex);
    const auto known = identifiers_.find(which);
    if (known == identifiers_.end() || !known->second.asked)
        return;
    identifier& one = known->second;
    const rdma_ucm_conn_param with = *std::exchange(one.asked, std::nullopt);
    try {
        require(reachable, ETIMEDOUT);
        begin(one, with);
    } catch (const failure& why) {
        one.now = phase::ended;
        tell(one, event_of(unreachable, -why.number));
    }
}

namespace {

/// The addresses as the program knows them, where the wire has another family; see service::local_for().
cm::ip_header header_of(const identifier& one)
{
    const bool is_same = one.remote.of() == family_of(one.route.peer);
    const net::roce_gid& peer = one.remote.is_any() ? ipv6_loopback : one.remote.gid;
    return {.source_port = one.local.port,
            .source = is_same ? one.route.local : one.local.gid,
            .destination = is_same ? one.route.peer : peer};
}

} // namespace

void service::begin_connection(identifier& one, const rdma_ucm_conn_param& with)
{
    constexpr std::uint8_t usual_timeout = 16; // 0.27 s
    cm::proposal ours = proposal_of(one, with);
    ours.path_mtu = device_of(one).rdma.most_path_mtu();
    ours.ack_timeout = one.ack_timeout.value_or(usual_timeout);
    ours.traffic_class = one.traffic_class;
    const cm::req request = cm::request_of(ours, cm::service_of(one.space, one.remote.port), header_of(one),
                                           data_of(with, cm::most_request_data));
    std::uint32_t id = 0;
    require_accepted(agent_of(*one.device).call([&](cm::manager& at, std::uint64_t now) {
        return at.connect(one.route, request, now, id);
    }));
    one.request = request;
    one.connection = id;
}

void service::begin_resolution(identifier& one, const rdma_ucm_conn_param& with)
{
    constexpr std::uint8_t timeout = 16, most_retries = 15;
    cm::sidr_req request{.service = cm::service_of(one.space, one.remote.port)};
    cm::write_ip_header(std::span(request.data).first<cm::ip_header::bytes>(), header_of(one));
    const auto data = data_of(with, cm::most_resolve_data);
    std::copy(data.begin(), data.end(), request.data.begin() + cm::ip_header::bytes);
    std::uint32_t id = 0;
    require_accepted(agent_of(*one.device).call([&](cm::manager& at, std::uint64_t now) {
        return at.resolve(one.route, request, timeout, most_retries, now, id);
    }));
    one.connection = id;
}

void service::accept(identifier& one, std::uint64_t user_handle, const rdma_ucm_conn_param& with)
{
    require(one.connection.has_value(), EINVAL);
    connections::agent& at = agent_of(*one.device);
    const std::uint32_t id = *one.connection;
    if (with.valid == 0) {
        require(!one.passive, EINVAL);
        require_accepted(at.call([&](cm::manager& of, std::uint64_t) { return of.ready(id); }));
        one.now = phase::connected;
        return;
    }
    require(one.passive && !one.accepted, EINVAL);
    if (one.datagrams) {
        cm::sidr_rep reply{.queue = with.qp_num & 0xffffff, .queue_key = with.qkey != 0 ? with.qkey : one.queue_key};
        const auto data = data_of(with, reply.data.size());
        std::copy(data.begin(), data.end(), reply.data.begin());
        require_accepted(at.call([&](cm::manager& of, std::uint64_t now) { return of.answer(id, reply, now); }));
        one.now = phase::connected;
    } else {
        const cm::rep reply = cm::reply_of(proposal_of(one, with), data_of(with, cm::rep{}.data.size()));
        require_accepted(at.call([&](cm::manager& of, std::uint64_t now) { return of.accept(id, reply, now); }));
        one.reply = reply;
    }
    one.user_handle = user_handle;
    one.accepted = true;
}

void service::reject(identifier& one, std::uint8_t reason, std::span<const std::uint8_t> data)
{
    constexpr std::uint8_t vendor_option_not_supported = 35;
    require(one.connection.has_value(), EINVAL);
    require(reason == 0 || reason == static_cast<std::uint8_t>(cm::reject_reason::consumer_reject) ||
                reason == vendor_option_not_supported,
            EINVAL);
    connections::agent& at = agent_of(*one.device);
    const std::uint32_t id = *one.connection;
    if (one.datagrams) {
        cm::sidr_rep reply{.status = cm::service_status::rejected};
        require(data.size() <= reply.data.size(), EINVAL);
        std::copy(data.begin(), data.end(), reply.data.begin());
        require_accepted(at.call([&](cm::manager& of, std::uint64_t now) { return of.answer(id, reply, now); }));
    } else {
        cm::rej rejection;
        if (reason != 0)
            rejection.reason = static_cast<cm::reject_reason>(reason);
        require(data.size() <= rejection.data.size(), EINVAL);
        std::copy(data.begin(), data.end(), rejection.data.begin());
        require_accepted(at.call([&](cm::manager& of, std::uint64_t now) { return of.reject(id, rejection, now); }));
    }
    one.now = phase::ended;
}

void service::disconnect(identifier& one)
{
    require(one.connection.has_value() && !one.datagrams, EINVAL);
    require_accepted(agent_of(*one.device).call([&](cm::manager& of, std::uint64_t now) {
        return of.disconnect(*one.connection, {}, now);
    }));
}

void service::notice(identifier& one)
{
    require(one.connection.has_value() && !one.datagrams, EINVAL);
    require_accepted(
        agent_of(*one.device).call([&](cm::manager& of, std::uint64_t) { return of.established(*one.connection); }));
}

std::uint32_t service::join(identifier& one, std::uint64_t user_handle, const socket_address& group)
{
    require(one.device.has_value() && one.datagrams && net::is_group(group.gid), EINVAL);
    const std::uint32_t number = add(one.in).number;
    identifiers_.erase(number);
    memberships_[number] = {.user_handle = user_handle, .of = one.number, .group = group.gid};
    one.groups.insert(number);
    rdma_ucm_event_resp says = event_of(multicast_join);
    says.uid = user_handle;
    says.id = number;
    says.param.ud.qp_num = rdma_peer::group_queue;
    says.param.ud.qkey = one.queue_key;
    says.param.ud.ah_attr = address_handle(one, group.gid);
    one.in->push({.says = says, .about = number, .of_group = true});
    return number;
}

std::uint32_t service::leave(file& in, int number, std::uint32_t which)
{
    const auto found = memberships_.find(which);
    require(found != memberships_.end(), ENOENT);
    identifier& of = find(in, found->second.of);
    in.take_if(number, [&](const waiting_event& each) { return each.of_group && each.about == which; });
    const std::uint32_t reported = found->second.events_reported;
    of.groups.erase(which);
    memberships_.erase(found);
    return reported;
}

/// A new identifier for the request of a peer.  @return nullptr: the program reads too slowly
identifier* service::take_request(unsigned device, const cm::event& next, identifier& asked)
{
    const auto gid = std::ranges::find(gids_[device], next.route.local);
    if (gid == gids_[device].end() || asked.undelivered >= asked.backlog)
        return nullptr;
    identifier& made = add(asked.in);
    made.space = asked.space;
    made.datagrams = asked.datagrams;
    made.passive = true;
    made.traffic_class = asked.traffic_class;
    made.queue_key = asked.queue_key;
    use_device(made, device, static_cast<unsigned>(gid - gids_[device].begin()));
    made.route = next.route;
    made.connection = next.id;
    made.now = phase::connecting;
    by_connection_[{device, next.id}] = made.number;
    ++asked.undelivered;
    return &made;
}

/// A REQ that finds no room is as lost: when the peer repeats it, there may be some. A datagram's request is refused.
/// Both as on Linux.
void service::tell_request(unsigned device, const cm::event& next)
{
    const auto* const request = std::get_if<cm::req>(&next.body);
    const auto* const resolution = std::get_if<cm::sidr_req>(&next.body);
    const cm::ip_header ports =
        cm::read_ip_header(request ? std::span<const std::uint8_t>(request->data) : resolution->data)
            .value_or(cm::ip_header{.source_port = 0, .source = next.route.peer, .destination = next.route.local});
    identifier* const listener = listener_for(device, next, family_of(ports.destination));
    identifier* const made = listener ? take_request(device, next, *listener) : nullptr;
    if (!made) {
        agent_of(device).call([&](cm::manager& of, std::uint64_t now) {
            if (listener && request)
                return of.ignore(next.id);
            if (request)
                of.reject(next.id, {.reason = cm::reject_reason::invalid_service_id}, now);
            return of.destroy(next.id, now);
        });
        return;
    }
    made->local = address_of(ports.destination, listener->local.port);
    made->remote = address_of(ports.source, ports.source_port);
    if (request)
        made->request = *request;
    tell(*made, request ? event_of_request(*request) : event_of_service_request(*made, *resolution), listener);
}

/// What an agent tells, in its thread.
void service::take(unsigned device, const cm::event& next)
{
    const std::scoped_lock lock(mutex);
    if (next.kind == cm::event_kind::connect_request || next.kind == cm::event_kind::service_request)
        return tell_request(device, next);
    const auto found = by_connection_.find({device, next.id});
    if (found == by_connection_.end())
        return;
    identifier& one = identifiers_.at(found->second);
    if (next.gone) {
        by_connection_.erase(found);
        one.connection.reset();
    }
    switch (next.kind) {
        case cm::event_kind::connect_response:
            one.reply = std::get<cm::rep>(next.body);
            return tell(one, event_of_reply(*one.reply));
        case cm::event_kind::established: one.now = phase::connected; return tell(one, event_of(established));
        case cm::event_kind::rejected:
            one.now = phase::ended;
            return tell(one, event_of_rejection(std::get<cm::rej>(next.body)));
        case cm::event_kind::unreachable: one.now = phase::ended; return tell(one, event_of(unreachable, -ETIMEDOUT));
        case cm::event_kind::disconnected: one.now = phase::ended; return tell(one, event_of(disconnected));
        case cm::event_kind::time_wait_over: return tell(one, event_of(time_wait_exit));
        case cm::event_kind::service_response:
            one.now = phase::connected;
            return tell(one, event_of_service(one, std::get<cm::sidr_rep>(next.body)));
        case cm::event_kind::dropped: one.now = phase::ended; return tell(one, event_of(connect_error, -ENOMEM));
        case cm::event_kind::connect_request:
        case cm::event_kind::service_request: return;
    }
}

} // namespace weftio::verbs::rdma_cm
