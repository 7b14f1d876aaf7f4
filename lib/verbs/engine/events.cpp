#include "events.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/log.hpp"
#include "weftio/device/cqe.h"

namespace weftio::verbs {

namespace {

/// Values of verbs (enum ibv_event_type) that the kernel's user headers do not define. The GID table does not change
/// while its port is open, so GID_CHANGE is never sent.
enum class event_type : std::uint32_t {
    cq_err = 0,
    qp_fatal = 1,
    qp_req_err = 2,
    qp_access_err = 3,
    comm_est = 4,
    sq_drained = 5,
    port_active = 9,
    port_err = 10,
    srq_err = 14,
    srq_limit_reached = 15,
    qp_last_wqe_reached = 16
};

constexpr std::uint64_t only_port = 1;

void push(context& in, std::uint64_t element, event_type type)
{
    const ib_uverbs_async_event_desc event{
        .element = element, .event_type = static_cast<std::uint32_t>(type), .reserved = 0};
    in.asynchronous->push(std::as_bytes(std::span(&event, 1)));
}

template <class Object>
void tell(context& in, Object& about, event_type type)
{
    push(in, about.user_handle, type);
    ++about.async;
}

/// The event for a failure of a queue pair, as in IBTA 9.9.3 and 11.6.3, and on ConnectX. A failure that completes an
/// entry of either ring is reported by its completion, not by an event. Any other failure ends the queue pair without a
/// completion. A malformed request of the peer is "invalid request"; a request for memory that the peer may not use is
/// "access violation". A failure without a request, such as a wrong doorbell record or a completion queue overrun, is
/// "local work queue catastrophic error".
std::optional<event_type> event_of(const send_failure& why) noexcept
{
    if (why.reason == refusal::wrong_doorbell || why.reason == refusal::completions_overrun)
        return event_type::qp_fatal;
    if (why.what != outcome_of::none)
        return std::nullopt;
    switch (why.syndrome) {
        case WEFTIO_SYNDROME_REMOTE_INVALID: return event_type::qp_req_err;
        case WEFTIO_SYNDROME_REMOTE_ACCESS: return event_type::qp_access_err;
        default: return event_type::qp_fatal;
    }
}

std::string peer_of(const pair& of)
{
    if (of.peer_address.empty())
        return {};
    return fmt::format(" (peer: queue pair {} at {})", of.set.dest_qp_num, of.peer_address);
}

/// A queue pair in ERR takes no more entries from its shared receive queue (IBTA 11.6.3.1).
void tell_last_taken(context& in, pair& of)
{
    if (!of.shares || of.last_taken || of.queue->state() != rdma_state::error)
        return;
    of.last_taken = true;
    tell(in, of, event_type::qp_last_wqe_reached);
    if (!of.shares->broken && of.shares->queue->standing().broken) {
        of.shares->broken = true;
        tell(in, *of.shares, event_type::srq_err);
    }
}

void tell_failure(context& in, pair& of, const send_failure& why)
{
    core::log_or_lose(log_level::error, [&] { return why.text + peer_of(of); });
    if (const std::optional<event_type> type = event_of(why))
        tell(in, of, *type);
    tell_last_taken(in, of);
}

void check_overrun(context& in, completions& of)
{
    if (of.overrun_reported || !of.queue->overrun())
        return;
    of.overrun_reported = true;
    tell(in, of, event_type::cq_err);
}

void check_port(context& in)
{
    const bool up = in.of.port.link_up();
    if (up == in.link_was_up)
        return;
    in.link_was_up = up;
    push(in, only_port, up ? event_type::port_active : event_type::port_err);
}

} // namespace

void watch_failures(context& in, pair& of)
{
    of.failures.emplace();
    of.failures->attach(*of.queue,
                        {.on_sent = {}, .on_error = [&](const send_failure& why) { tell_failure(in, of, why); }});
}

void poll_events(context& in, pair& of)
{
    in.tell_stale(); // while it has its peer
    of.failures->progress();
    if (of.first_request && of.queue->counters().requests != *of.first_request) {
        of.first_request.reset();
        tell(in, of, event_type::comm_est);
    }
    if (of.tells_drained && !of.queue->draining()) {
        of.tells_drained = false;
        if (of.queue->state() == rdma_state::send_queue_drained)
            tell(in, of, event_type::sq_drained);
    }
}

void poll_events(context& in)
{
    in.asynchronous->flush();
    for (const auto& [number, each] : in.channels)
        each->events.flush();
    for (const auto& [handle, each] : in.completion_queues)
        check_overrun(in, *each);
    for (const auto& [handle, each] : in.shared_queues)
        poll_events(in, *each);
    for (const auto& [handle, each] : in.pairs)
        poll_events(in, *each);
    check_port(in);
}

void poll_events(context& in, shared& of)
{
    if (!of.armed)
        return;
    const shared_receives_standing now = of.queue->standing();
    of.armed = now.limit != 0;
    if (std::exchange(of.limits_told, now.limits_reached) != now.limits_reached)
        tell(in, of, event_type::srq_limit_reached);
}

void leave_state(context& in, pair& of, rdma_state to)
{
    poll_events(in, of);
    if (to == rdma_state::ready_to_receive)
        of.first_request = of.queue->counters().requests;
}

/// The first packet in RTR causes an event; a packet in RTS does not (IBTA 11.6.3).
void enter_state(context& in, pair& of, bool tells_drained)
{
    const rdma_state now = of.queue->state();
    if (now != rdma_state::ready_to_receive)
        of.first_request.reset();
    of.last_taken = of.last_taken && now != rdma_state::reset;
    tell_last_taken(in, of);
    of.tells_drained = now == rdma_state::send_queue_drained && (tells_drained || of.tells_drained);
    poll_events(in, of);
}

std::uint32_t end_events(context& in, std::uint32_t reported, std::uint64_t user_handle)
{
    return reported - std::min(reported, in.asynchronous->withdraw(user_handle));
}

} // namespace weftio::verbs
