// Which connections there are, their states, what is sent for them, and what time does to them.
#include <algorithm>

#include "cm/manager.hpp"
#include "net/byte_order.hpp"
#include "net/roce_rules.hpp"

namespace weftio::cm {

const char* name_of(state now) noexcept
{
    switch (now) {
        case state::request_sent: return "waits for REP";
        case state::request_delayed: return "waits for REP, which the peer has put off (MRA)";
        case state::reply_received: return "waits for the program to send RTU";
        case state::request_received: return "waits for the program to accept or reject";
        case state::reply_sent: return "waits for RTU";
        case state::reply_delayed: return "waits for RTU, which the peer has put off (MRA)";
        case state::established: return "established";
        case state::disconnect_sent: return "waits for DREP";
        case state::time_wait: return "in time-wait";
        case state::resolve_sent: return "waits for SIDR REP";
        case state::resolve_received: return "waits for the program to answer";
    }
    return "in an unknown state";
}

namespace {

/// Whether a queue pair of this side believes to be connected to the peer's, or will soon.
constexpr bool holds_peer_queue(const connection& one) noexcept
{
    return one.now >= state::reply_received && one.now <= state::established && one.peer_queue != 0;
}

constexpr bool is_half_open(const connection& one) noexcept
{
    return one.now == state::request_received || one.now == state::reply_sent || one.now == state::reply_delayed ||
           one.now == state::resolve_received;
}

/// Whether the peer's next message, or its end, means anything to the connection.
constexpr bool awaits_peer(const connection& one) noexcept
{
    return one.now != state::time_wait && one.now != state::resolve_received;
}

constexpr bool waits_for_user(const connection& one) noexcept
{
    return one.now == state::request_received || one.now == state::resolve_received;
}

} // namespace

connection* manager::find(std::uint32_t id)
{
    const auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : &found->second;
}

connection* manager::find_of_peer(const roce_gid& peer, std::uint32_t peer_id, bool resolves)
{
    const auto found = by_peer_.find({peer, peer_id, resolves});
    return found == by_peer_.end() ? nullptr : find(found->second);
}

/// The connection that holds a queue pair of the peer, if it is another one than `but_id`.
connection* manager::of_queue(const roce_gid& peer, std::uint32_t queue, std::uint32_t but_id)
{
    const auto found = by_queue_.find({peer, queue});
    return found == by_queue_.end() || found->second == but_id ? nullptr : find(found->second);
}

std::optional<state> manager::state_of(std::uint32_t id) const
{
    const auto found = connections_.find(id);
    return found == connections_.end() ? std::nullopt : std::optional(found->second.now);
}

/// Who listens at this address goes before who listens at any.
std::optional<std::uint32_t> manager::listener_of(std::uint64_t service, const roce_gid& local) const
{
    std::optional<std::uint32_t> any;
    for (const auto& [number, at] : listeners_) {
        if (at.service != service)
            continue;
        if (at.local == local)
            return number;
        if (at.local == roce_gid{})
            any = number;
    }
    return any;
}

/// An odd step meets all numbers before it meets one twice.
std::uint32_t manager::free_id()
{
    do
        next_id_ += 0x9e3779b9;
    while (next_id_ == 0 || connections_.contains(next_id_));
    return next_id_;
}

/// There and back again, and the time that the peer needs.
std::uint64_t manager::answer_ns(std::uint8_t code) const noexcept
{
    return net::ack_timeout_ns(code) + 2 * with_.packet_life_ns + 1;
}

connection& manager::add(connection one)
{
    one.id = free_id();
    connection& added = connections_.emplace(one.id, std::move(one)).first->second;
    if (added.passive)
        by_peer_[{added.route.peer, added.peer_id, added.resolves}] = added.id;
    index(added, true);
    return added;
}

/// The connection no longer exists.
void manager::release(connection& one)
{
    index(one, false);
    wait_until(one, 0);
    if (one.passive)
        by_peer_.erase({one.route.peer, one.peer_id, one.resolves});
    const std::uint32_t id = one.id;
    connections_.erase(id);
}

/// Puts the connection into the lists that its state belongs to, or takes it out.
void manager::index(connection& one, bool is_in)
{
    if (holds_peer_queue(one)) {
        const queue_key key{one.route.peer, one.peer_queue};
        if (is_in)
            by_queue_[key] = one.id;
        else if (const auto found = by_queue_.find(key); found != by_queue_.end() && found->second == one.id)
            by_queue_.erase(found);
    }
    const auto change = [&](half_open& list) {
        is_in ? list.add(one.route.peer, one.id) : list.remove(one.route.peer, one.id);
    };
    if (is_half_open(one))
        change(half_open_);
    const auto at = listeners_.find(one.listener);
    if (waits_for_user(one) && at != listeners_.end())
        change(at->second.waiting);
}

void manager::enter(connection& one, state next)
{
    index(one, false);
    one.now = next;
    one.retries = 0;
    index(one, true);
    wait_until(one, 0);
}

void manager::enter_time_wait(connection& one, std::uint64_t now)
{
    enter(one, state::time_wait);
    wait_until(one, now + with_.time_wait_ns + 1);
    time_waits_.push_back(one.id);
}

void manager::wait_until(connection& one, std::uint64_t deadline)
{
    if (one.deadline != 0)
        deadlines_.erase({one.deadline, one.id});
    one.deadline = deadline;
    if (deadline != 0)
        deadlines_.emplace(deadline, one.id);
}

/// First goes what only waits for its end, then one that is half open.
/// @return false: there is no room for a connection of this peer
bool manager::make_room(const roce_gid& peer)
{
    if (connections_.size() < with_.most_connections)
        return true;
    while (!time_waits_.empty()) {
        connection* const oldest = find(time_waits_.front());
        time_waits_.pop_front();
        if (oldest == nullptr || oldest->now != state::time_wait)
            continue;
        tell_end(*oldest, event_kind::time_wait_over, {});
        return true;
    }
    const auto victim = half_open_.victim(peer);
    if (!victim)
        return false;
    evict(*find(*victim));
    return true;
}

bool manager::make_room_in_backlog(listening& at, const roce_gid& peer)
{
    if (at.waiting.size() < at.backlog)
        return true;
    const auto victim = at.waiting.victim(peer);
    if (!victim)
        return false;
    evict(*find(*victim));
    return true;
}

/// A peer that still repeats its REQ is told nothing: the next one may find room.
void manager::evict(connection& one)
{
    ++counts_.dropped;
    if (one.delay_sent || one.now == state::reply_sent || one.now == state::reply_delayed)
        send_rej(one, {.reason = reject_reason::no_resources});
    tell_end(one, event_kind::dropped, {});
}

void manager::send(const path& to, const mad& what)
{
    to_.send(to, write(what));
}

/// Sends what is repeated until an answer comes.
void manager::send(connection& one, mad what, std::uint64_t now)
{
    one.last = std::move(what);
    wait_until(one, now + one.answer_ns);
    send(one.route, *one.last);
}

void manager::send_rej(connection& one, rej reason)
{
    const bool answers_rep = one.now == state::reply_received;
    reason.local_id = one.id;
    reason.remote_id = one.peer_id;
    reason.what = answers_rep ? about::rep : one.now == state::request_received ? about::req : about::other;
    if (reason.reason == reject_reason::timeout) { // the peer may know no more of this side than its GUID
        reason.info_bytes = sizeof with_.guid;
        net::store_be(reason.info.data(), with_.guid);
    }
    one.last = mad{one.transaction, reason};
    send(one.route, *one.last);
}

/// The answer to a message that belongs to no connection.
void manager::send_rej(const path& to, const mad& of, about what, std::uint32_t peer_id, reject_reason why)
{
    send(to, {of.transaction, rej{.remote_id = peer_id, .what = what, .reason = why}});
}

void manager::send_mra(connection& one, std::uint8_t service_timeout)
{
    one.delay_sent = true;
    const about what = one.now == state::reply_received ? about::rep : about::req;
    send(one.route,
         {one.transaction,
          mra{.local_id = one.id, .remote_id = one.peer_id, .what = what, .service_timeout = service_timeout}});
}

void manager::send_drep(const path& to, const mad& of, const dreq& request)
{
    send(to, {of.transaction, drep{.local_id = request.remote_id, .remote_id = request.local_id}});
}

void manager::send_dreq(connection& one, dreq request, std::uint64_t now)
{
    request.local_id = one.id;
    request.remote_id = one.peer_id;
    request.remote_queue = one.peer_queue;
    enter(one, state::disconnect_sent);
    send(one, {transaction_of(one.id), request}, now);
}

void manager::repeat_last(connection& one)
{
    ++counts_.repeated;
    send(one.route, *one.last);
}

/// A user who has not seen the connection begin is not told what becomes of it, either.
void manager::tell(connection& one, event_kind kind, const message& body, bool gone)
{
    const bool announces = kind == event_kind::connect_request || kind == event_kind::service_request;
    if (!one.delivered && !announces) {
        std::erase_if(events_, [&](const event& waiting) { return waiting.id == one.id; });
        one.told = false;
    }
    const bool again = kind == event_kind::disconnected && std::exchange(one.ended, true);
    if (one.told && !again)
        events_.push_back({kind, one.id, gone, one.listener, one.route, body});
}

void manager::tell_end(connection& one, event_kind kind, const message& body)
{
    tell(one, kind, body, true);
    release(one);
}

/// No answer has come, or not in time. Only what was connected has an end of time-wait that its user is told of, as on
/// Linux.
void manager::give_up(connection& one, std::uint64_t now)
{
    const message unanswered = one.last->body;
    if (one.now == state::resolve_sent)
        return tell_end(one, event_kind::unreachable, unanswered);
    const bool disconnects = one.now == state::disconnect_sent;
    if (!disconnects)
        send_rej(one, {.reason = reject_reason::timeout});
    enter_time_wait(one, now);
    tell(one, disconnects ? event_kind::disconnected : event_kind::unreachable, unanswered, !disconnects);
    one.told = disconnects && one.told;
}

/// The peer will never answer.
void manager::lose(connection& one, std::uint64_t now)
{
    switch (one.now) {
        case state::reply_received:
        case state::established:
        case state::disconnect_sent:
            one.last.reset();
            enter_time_wait(one, now);
            return tell(one, event_kind::disconnected, dreq{.local_id = one.peer_id, .remote_id = one.id});
        case state::request_received:
            return tell_end(one, event_kind::rejected,
                            rej{.local_id = one.peer_id, .remote_id = one.id, .reason = reject_reason::timeout});
        case state::request_sent:
        case state::request_delayed:
        case state::reply_sent:
        case state::reply_delayed:
        case state::resolve_sent: return tell_end(one, event_kind::unreachable, message(one.last->body));
        case state::time_wait:
        case state::resolve_received: return;
    }
}

void manager::lose(const roce_gid& peer, std::uint64_t now)
{
    std::deque<std::uint32_t> lost;
    for (const auto& [id, one] : connections_)
        if (one.route.peer == peer && awaits_peer(one))
            lost.push_back(id);
    for (const std::uint32_t id : lost)
        lose(*find(id), now);
}

std::set<roce_gid> manager::peers() const
{
    std::set<roce_gid> all;
    for (const auto& each : connections_)
        if (awaits_peer(each.second))
            all.insert(each.second.route.peer);
    return all;
}

void manager::expire(connection& one, std::uint64_t now)
{
    if (one.now == state::time_wait)
        return tell_end(one, event_kind::time_wait_over, {});
    const bool repeats = one.now != state::request_delayed && one.now != state::reply_delayed;
    if (!repeats || one.retries == one.most_retries)
        return give_up(one, now);
    ++one.retries;
    repeat_last(one);
    wait_until(one, now + one.answer_ns);
}

void manager::expire(std::uint64_t now)
{
    while (!deadlines_.empty() && deadlines_.begin()->first <= now)
        expire(*find(deadlines_.begin()->second), now);
    while (!time_waits_.empty() && state_of(time_waits_.front()) != state::time_wait)
        time_waits_.pop_front();
}

} // namespace weftio::cm
