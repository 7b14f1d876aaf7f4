// What the user calls.
#include "cm/manager.hpp"

#include <algorithm>

namespace weftio::cm {

namespace {

constexpr bool is_queue(std::uint32_t number) noexcept
{
    return number > mad_queue && number <= 0xffffff;
}

/// Whether either side may still reject.
constexpr bool is_rejectable(state now) noexcept
{
    return now <= state::reply_delayed;
}

} // namespace

refusal manager::listen(std::uint64_t service, const roce_gid& local, std::size_t backlog, std::uint32_t& listener)
{
    for (const auto& [number, at] : listeners_) {
        if (at.service == service && at.local == local)
            return refusal::service_in_use;
    }
    listener = ++next_listener_;
    listeners_[listener] = {service, local, std::max<std::size_t>(backlog, 1), {}};
    return refusal::none;
}

refusal manager::stop_listening(std::uint32_t listener, std::uint64_t now)
{
    if (listeners_.erase(listener) == 0)
        return refusal::unknown_service;
    std::deque<std::uint32_t> unseen;
    for (const event& one : events_) {
        if (one.listener == listener)
            unseen.push_back(one.id);
    }
    for (const std::uint32_t id : unseen) {
        connection* const one = find(id);
        if (one == nullptr)
            continue;
        if (one->resolves)
            answer(id, {.status = service_status::unknown_service}, now);
        else
            reject(id, {.reason = reject_reason::invalid_service_id}, now);
        destroy(id, now);
    }
    return refusal::none;
}

refusal manager::connect(const path& to, req request, std::uint64_t now, std::uint32_t& id)
{
    const bool connected =
        request.transport == transport_service::reliable || request.transport == transport_service::unreliable;
    if (!is_queue(request.queue) || request.path_mtu < 1 || request.path_mtu > 5 || !connected)
        return refusal::wrong_message;
    if (!make_room(to.local))
        return refusal::no_room;
    connection& one = add({.route = to,
                           .now = state::request_sent,
                           .queue = request.queue,
                           .most_retries = request.most_retries,
                           .answer_ns = answer_ns(request.remote_response_timeout)});
    id = one.id;
    one.transaction = transaction_of(id);
    request.local_id = id;
    request.guid = with_.guid;
    request.primary.local_lid = request.primary.remote_lid = 0xffff;
    request.primary.local_gid = to.local;
    request.primary.remote_gid = to.peer;
    send(one, {one.transaction, request}, now);
    return refusal::none;
}

refusal manager::accept(std::uint32_t id, rep reply, std::uint64_t now)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now != state::request_received)
        return refusal::wrong_state;
    if (!is_queue(reply.queue))
        return refusal::wrong_message;
    one->queue = reply.queue;
    one->delivered = true;
    reply.local_id = id;
    reply.remote_id = one->peer_id;
    reply.guid = with_.guid;
    reply.failover = one->has_alternate ? 1 : 0;
    enter(*one, state::reply_sent);
    send(*one, {one->transaction, reply}, now);
    return refusal::none;
}

refusal manager::reject(std::uint32_t id, rej reason, std::uint64_t now)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (!is_rejectable(one->now))
        return refusal::wrong_state;
    one->delivered = true;
    send_rej(*one, reason);
    one->told = one->told && (one->now == state::reply_sent || one->now == state::reply_delayed);
    enter_time_wait(*one, now);
    return refusal::none;
}

refusal manager::ignore(std::uint32_t id)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now != state::request_received)
        return refusal::wrong_state;
    std::erase_if(events_, [&](const event& waiting) { return waiting.id == id; });
    ++counts_.refused;
    release(*one);
    return refusal::none;
}

refusal manager::delay(std::uint32_t id, std::uint8_t service_timeout)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now != state::request_received && one->now != state::reply_received)
        return refusal::wrong_state;
    send_mra(*one, service_timeout);
    return refusal::none;
}

refusal manager::ready(std::uint32_t id, rtu last)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now != state::reply_received)
        return refusal::wrong_state;
    last.local_id = id;
    last.remote_id = one->peer_id;
    enter(*one, state::established);
    one->last = mad{one->transaction, last};
    send(one->route, *one->last);
    return refusal::none;
}

refusal manager::established(std::uint32_t id)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now == state::established)
        return refusal::none;
    if (one->now != state::reply_sent && one->now != state::reply_delayed)
        return refusal::wrong_state;
    enter(*one, state::established);
    tell(*one, event_kind::established, rtu{.local_id = one->peer_id, .remote_id = id});
    return refusal::none;
}

refusal manager::disconnect(std::uint32_t id, dreq request, std::uint64_t now)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now == state::disconnect_sent || one->now == state::time_wait)
        return refusal::none;
    if (one->now != state::established)
        return refusal::wrong_state;
    send_dreq(*one, request, now);
    return refusal::none;
}

refusal manager::destroy(std::uint32_t id, std::uint64_t now)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now == state::resolve_received)
        answer(id, {.status = service_status::rejected}, now);
    else if (one->now == state::request_sent || one->now == state::request_delayed)
        reject(id, {.reason = reject_reason::timeout}, now);
    else if (is_rejectable(one->now))
        reject(id, {.reason = reject_reason::consumer_reject}, now);
    else if (one->now == state::established)
        send_dreq(*one, {}, now);
    std::erase_if(events_, [&](const event& waiting) { return waiting.id == id; });
    one->told = false;
    if (one->now == state::resolve_sent)
        release(*one);
    return refusal::none;
}

refusal manager::resolve(const path& to, sidr_req request, std::uint8_t timeout, std::uint8_t most_retries,
                         std::uint64_t now, std::uint32_t& id)
{
    if (!make_room(to.local))
        return refusal::no_room;
    connection& one = add({.route = to,
                           .now = state::resolve_sent,
                           .resolves = true,
                           .most_retries = most_retries,
                           .answer_ns = answer_ns(timeout)});
    id = request.request_id = one.id;
    one.transaction = transaction_of(id);
    send(one, {one.transaction, request}, now);
    return refusal::none;
}

refusal manager::answer(std::uint32_t id, sidr_rep reply, std::uint64_t now)
{
    connection* const one = find(id);
    if (one == nullptr)
        return refusal::unknown_connection;
    if (one->now != state::resolve_received)
        return refusal::wrong_state;
    one->delivered = true;
    reply.request_id = one->peer_id;
    reply.service = one->service;
    one->last = mad{one->transaction, reply};
    send(one->route, *one->last);
    enter_time_wait(*one, now);
    one->told = false;
    return refusal::none;
}

std::optional<event> manager::next_event()
{
    if (events_.empty())
        return std::nullopt;
    event oldest = std::move(events_.front());
    events_.pop_front();
    if (connection* const one = find(oldest.id))
        one->delivered = true;
    return oldest;
}

} // namespace weftio::cm
