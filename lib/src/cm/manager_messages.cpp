// What arrives. Each message changes a connection only in the states that its comment names; in others it is counted
// as untimely.
#include "cm/manager.hpp"
#include "net/roce_rules.hpp"

namespace weftio::cm {

namespace {

constexpr bool is_connecting(state now) noexcept
{
    return now == state::request_sent || now == state::request_delayed;
}

constexpr bool waits_for_ready(state now) noexcept
{
    return now == state::reply_sent || now == state::reply_delayed;
}

bool is_rej(const connection& one) noexcept
{
    return one.last && std::holds_alternative<rej>(one.last->body);
}

} // namespace

void manager::receive(const path& from, std::span<const std::uint8_t> bytes, std::uint64_t now)
{
    mad whole;
    if (read(bytes, whole) != mad_refusal::none) {
        ++counts_.malformed;
        return;
    }
    std::visit([&](const auto& body) { take(from, whole, body, now); }, whole.body);
}

/// The connection that a message names by both IDs. Counts messages of strangers.
connection* manager::addressed(const path& from, std::uint32_t id, std::uint32_t peer_id)
{
    connection* const one = find(id);
    const bool known = one != nullptr && one->route == from && !one->resolves &&
                       (one->peer_id == peer_id || (one->peer_id == 0 && peer_id != 0));
    if (!known)
        ++counts_.strangers;
    return known ? one : nullptr;
}

/// A REQ that a connection of the peer has come from already. Repeated in request_received: MRA, in reply_sent: the
/// REP again, in time_wait after a REJ: the REJ again.
bool manager::is_repeated(const path& from, const mad& whole, const req& request)
{
    connection* const one = find_of_peer(from.peer, request.local_id, false);
    if (one == nullptr)
        return false;
    const bool same = one->transaction == whole.transaction && one->peer_queue == request.queue;
    if (!same && one->now <= state::established && one->peer_queue == request.queue)
        return false;                                                                    // stale
    if (!same && (one->now == state::disconnect_sent || one->now == state::time_wait)) { // the peer uses its ID anew
        if (one->now == state::disconnect_sent)
            tell(*one, event_kind::disconnected, request);
        tell_end(*one, event_kind::time_wait_over, {});
        return false;
    }
    if (!same)
        send_rej(from, whole, about::req, request.local_id, reject_reason::duplicate_communication_id);
    else if (one->now == state::request_received)
        send_mra(*one, with_.service_timeout);
    else if (one->now == state::reply_sent || (one->now == state::time_wait && is_rej(*one)))
        repeat_last(*one);
    else
        ++counts_.untimely;
    return true;
}

/// Rejects a REQ that no user has to see.
bool manager::is_acceptable(const path& from, const mad& whole, const req& request, std::uint64_t now)
{
    const auto refuse = [&](reject_reason why) {
        send_rej(from, whole, about::req, request.local_id, why);
        return false;
    };
    if (request.transport != transport_service::reliable && request.transport != transport_service::unreliable)
        return refuse(reject_reason::invalid_transport_service_type);
    if (request.path_mtu < 1 || request.path_mtu > 5)
        return refuse(reject_reason::invalid_path_mtu);
    if (connection* const old = of_queue(from.peer, request.queue, 0)) {
        abort_stale(*old, now);
        return refuse(reject_reason::stale_connection);
    }
    const auto listener = listener_of(request.service, from.local);
    if (!listener)
        return refuse(reject_reason::invalid_service_id);
    if (!make_room_in_backlog(listeners_[*listener], from.peer)) {
        ++counts_.refused; // silently: the peer repeats its REQ, and there may be room then
        return false;
    }
    if (!make_room(from.peer)) {
        ++counts_.refused;
        return refuse(reject_reason::no_resources);
    }
    return true;
}

/// REQ: a new connection, in request_received.
void manager::take(const path& from, const mad& whole, const req& request, std::uint64_t now)
{
    if (request.local_id == 0 || request.queue <= mad_queue) {
        ++counts_.malformed;
        return;
    }
    if (is_repeated(from, whole, request) || !is_acceptable(from, whole, request, now))
        return;
    connection& one = add({.peer_id = request.local_id,
                           .route = from,
                           .now = state::request_received,
                           .passive = true,
                           .delivered = false,
                           .has_alternate = request.alternate != path_fields{},
                           .listener = *listener_of(request.service, from.local),
                           .transaction = whole.transaction,
                           .peer_queue = request.queue,
                           .most_retries = request.most_retries,
                           .answer_ns = answer_ns(request.local_response_timeout)});
    tell(one, event_kind::connect_request, request);
}

/// MRA: in request_sent and reply_sent, the answer may take longer.
void manager::take(const path& from, const mad& whole, const mra& delayed, std::uint64_t now)
{
    connection* const one = addressed(from, delayed.remote_id, delayed.local_id);
    if (one == nullptr)
        return;
    if (one->transaction != whole.transaction) {
        ++counts_.strangers;
        return;
    }
    const bool of_req = one->now == state::request_sent && delayed.what == about::req;
    const bool of_rep = one->now == state::reply_sent && delayed.what == about::rep;
    if (!of_req && !of_rep) {
        ++counts_.untimely;
        return;
    }
    one->peer_id = delayed.local_id;
    enter(*one, of_req ? state::request_delayed : state::reply_delayed);
    wait_until(*one, now + net::ack_timeout_ns(delayed.service_timeout) + one->answer_ns);
}

/// REJ: before the connection is established, its end; later, time_wait.
void manager::take(const path& from, const mad& whole, const rej& reason, std::uint64_t now)
{
    // Who gives up a REQ does not know this side's ID; who has rejected it may have none.
    connection* one = reason.remote_id == 0 ? find_of_peer(from.peer, reason.local_id, false) : find(reason.remote_id);
    const bool known = one != nullptr && one->route == from && !one->resolves &&
                       one->transaction == whole.transaction &&
                       (one->peer_id == 0 || reason.local_id == 0 || one->peer_id == reason.local_id);
    if (!known) {
        ++counts_.strangers;
        return;
    }
    if (one->now == state::time_wait) {
        ++counts_.untimely;
        return;
    }
    const bool rests = one->now == state::established || one->now == state::disconnect_sent ||
                       one->now == state::reply_received || reason.reason == reject_reason::stale_connection;
    const auto kind = one->now == state::disconnect_sent ? event_kind::disconnected : event_kind::rejected;
    if (!rests)
        return tell_end(*one, kind, reason);
    one->last.reset();
    enter_time_wait(*one, now);
    tell(*one, kind, reason);
}

/// REP: in request_sent and request_delayed, reply_received. Repeated in reply_received: MRA, in established: the RTU
/// again, in time_wait after a REJ: the REJ again.
void manager::take(const path& from, const mad& whole, const rep& reply, std::uint64_t now)
{
    if (find(reply.remote_id) == nullptr) {
        ++counts_.strangers;
        return send_rej(from, whole, about::rep, reply.local_id, reject_reason::invalid_communication_id);
    }
    connection* const one = addressed(from, reply.remote_id, reply.local_id);
    if (one == nullptr)
        return;
    if (one->passive || one->transaction != whole.transaction || reply.queue <= mad_queue)
        ++counts_.strangers;
    else if (is_connecting(one->now))
        take_new_reply(*one, whole, reply, now);
    else if (one->now == state::reply_received)
        send_mra(*one, with_.service_timeout);
    else if (one->now == state::established || (one->now == state::time_wait && is_rej(*one)))
        repeat_last(*one);
    else
        ++counts_.untimely;
}

void manager::take_new_reply(connection& one, const mad& whole, const rep& reply, std::uint64_t now)
{
    one.peer_id = reply.local_id;
    connection* const old = of_queue(one.route.peer, reply.queue, one.id);
    if (old == nullptr) {
        one.peer_queue = reply.queue;
        enter(one, state::reply_received);
        tell(one, event_kind::connect_response, reply);
        return;
    }
    const std::uint32_t id = one.id;
    abort_stale(*old, now);
    connection& rejected = *find(id);
    const rej stale{
        .local_id = id, .remote_id = reply.local_id, .what = about::rep, .reason = reject_reason::stale_connection};
    rejected.last = mad{whole.transaction, stale};
    send(rejected.route, *rejected.last);
    enter_time_wait(rejected, now);
    tell(rejected, event_kind::rejected, stale);
}

/// The peer has ended this connection without a word (IBTA 12.4.1): it uses the queue pair for another one.
void manager::abort_stale(connection& old, std::uint64_t now)
{
    if (old.now == state::established) {
        send_dreq(old, {}, now);
        return tell(old, event_kind::disconnected, message(old.last->body));
    }
    send_rej(old, {.reason = reject_reason::stale_connection});
    const message why = old.last->body;
    enter_time_wait(old, now);
    tell(old, event_kind::rejected, why);
}

/// RTU: in reply_sent and reply_delayed, established.
void manager::take(const path& from, const mad& whole, const rtu& last, std::uint64_t)
{
    connection* const one = addressed(from, last.remote_id, last.local_id);
    if (one == nullptr)
        return;
    if (one->transaction != whole.transaction) {
        ++counts_.strangers;
    } else if (waits_for_ready(one->now)) {
        enter(*one, state::established);
        tell(*one, event_kind::established, last);
    } else {
        ++counts_.untimely;
    }
}

/// DREQ: from reply_received, reply_sent, reply_delayed, established and disconnect_sent to time_wait, with a DREP.
/// Repeated in time_wait, and of a connection that is gone: DREP.
void manager::take(const path& from, const mad& whole, const dreq& request, std::uint64_t now)
{
    if (find(request.remote_id) == nullptr)
        return send_drep(from, whole, request);
    connection* const one = addressed(from, request.remote_id, request.local_id);
    if (one == nullptr)
        return;
    if (request.remote_queue != one->queue) {
        ++counts_.strangers;
        return;
    }
    const bool ends = one->now == state::reply_received || waits_for_ready(one->now) ||
                      one->now == state::established || one->now == state::disconnect_sent;
    if (!ends && one->now != state::time_wait) {
        ++counts_.untimely;
        return;
    }
    send_drep(from, whole, request);
    if (!ends)
        return;
    one->last.reset();
    enter_time_wait(*one, now);
    tell(*one, event_kind::disconnected, request);
}

/// DREP: from disconnect_sent to time_wait.
void manager::take(const path& from, const mad& whole, const drep& reply, std::uint64_t now)
{
    connection* const one = addressed(from, reply.remote_id, reply.local_id);
    if (one == nullptr)
        return;
    if (one->now != state::disconnect_sent) {
        ++counts_.untimely;
    } else if (one->last->transaction != whole.transaction) {
        ++counts_.strangers;
    } else {
        one->last.reset();
        enter_time_wait(*one, now);
        tell(*one, event_kind::disconnected, reply);
    }
}

/// SIDR REQ: a new request, in resolve_received. Repeated in time_wait: the SIDR REP again.
void manager::take(const path& from, const mad& whole, const sidr_req& request, std::uint64_t)
{
    if (request.request_id == 0) {
        ++counts_.malformed;
        return;
    }
    if (connection* const one = find_of_peer(from.peer, request.request_id, true)) {
        const bool same = one->transaction == whole.transaction;
        if (same && one->now == state::time_wait)
            repeat_last(*one);
        if (same || one->now != state::time_wait)
            return;
        release(*one);
    }
    const auto listener = listener_of(request.service, from.local);
    if (!listener)
        return send(from, {whole.transaction, sidr_rep{.request_id = request.request_id,
                                                       .status = service_status::unknown_service,
                                                       .service = request.service}});
    if (!make_room_in_backlog(listeners_[*listener], from.peer) || !make_room(from.peer)) {
        ++counts_.refused;
        return;
    }
    connection& one = add({.peer_id = request.request_id,
                           .route = from,
                           .now = state::resolve_received,
                           .resolves = true,
                           .passive = true,
                           .delivered = false,
                           .listener = *listener,
                           .service = request.service,
                           .transaction = whole.transaction});
    tell(one, event_kind::service_request, request);
}

/// SIDR REP: the end of resolve_sent.
void manager::take(const path& from, const mad& whole, const sidr_rep& reply, std::uint64_t)
{
    connection* const one = find(reply.request_id);
    if (one == nullptr || one->route != from || one->now != state::resolve_sent ||
        one->transaction != whole.transaction) {
        ++counts_.strangers;
        return;
    }
    tell_end(*one, event_kind::service_response, reply);
}

/// LAP: in established, refused; elsewhere the ID is not known.
void manager::take(const path& from, const mad& whole, const lap& request, std::uint64_t)
{
    const connection* const one = addressed(from, request.remote_id, request.local_id);
    const bool connected = one != nullptr && one->now == state::established;
    send(from, {whole.transaction,
                apr{.local_id = request.remote_id,
                    .remote_id = request.local_id,
                    .status = connected ? alternate_status::unsupported : alternate_status::invalid_communication_id}});
}

/// APR: nothing, as no LAP is ever sent.
void manager::take(const path&, const mad&, const apr&, std::uint64_t)
{
    ++counts_.untimely;
}

} // namespace weftio::cm
