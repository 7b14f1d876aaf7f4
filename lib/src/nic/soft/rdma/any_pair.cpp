#include "nic/soft/rdma/any_pair.hpp"

#include <fmt/format.h>

#include "core/clock.hpp"

namespace weftio::nic::soft {

namespace {

/// The doorbell record of a queue pair in RESET: it never commits anything.
constexpr std::uint32_t record_of_nobody = 0;

} // namespace

any_pair::any_pair(const pair_rings& rings, rdma_service service, const keys::nic_keys& keys, pair_commons& commons)
    : service_(service), as_{keys::window_user::next_number(rings.send.entries.queue, rings.windows.type_2a),
                             rings.send.domain},
      held_(as_.is_2a() ? std::make_unique<keys::held_windows>(keys.table(), as_.number) : nullptr),
      staged_(commons.staged, commons.sender),
      sends_(rings.send, service, keys, {as_, held_.get(), rings.windows.strict}, commons.rounds, staged_),
      receives_(rings.receive, rings.send.entries.queue, keys, rings.send.domain, &staged_), commons_(commons)
{}

/// RESET: the rings keep their addresses, but nothing reads them.
void any_pair::rest(const pair_rings& rings)
{
    pair_rings resting = rings;
    resting.send.dbrec = resting.receive.dbrec = &record_of_nobody;
    restart(resting);
    state_ = rdma_state::reset;
}

void any_pair::stop_silently()
{
    sends_.be_silent();
    receives_.be_silent();
    stop();
}

void any_pair::restart_rings(const pair_rings& rings) noexcept
{
    staged_.restart();
    sends_.begin_again_at_zero(rings.send);
    receives_.restart(rings.receive);
    state_ = rdma_state::init;
}

/// Whether a completion queue of its own has overrun.
bool any_pair::has_overrun() const noexcept
{
    return sends_.completes_each() && state_ != rdma_state::reset && (sends_.overran() || receives_.overran());
}

/// Ends what has waited for copies.
void any_pair::settle()
{
    sends_.settle();
    receives_.settle();
}

/// Completes the failed entry first, because it is the reason for the flushed ones.
void any_pair::flush_both()
{
    staged_.stop_collecting(); // no byte is written long after the end
    sends_.flush_unread();
    sends_.collect();
    receives_.flush();
}

/// Reports to the host, and to the kernel by the send completion.
void any_pair::report_failed_receive(const roce::refused_request& by) noexcept
{
    failures_.put({.request = by,
                   .entry = receives_.failed_entry(),
                   .reason = receives_.failure(),
                   .time_ns = core::utc_now_ns()});
    sends_.report(refusal::refused_peer);
}

void any_pair::count_rings(rdma_counters& into) const noexcept
{
    into.enqueued = sends_.enqueued.value();
    into.done = sends_.done.value();
    into.done_bytes = sends_.done_bytes.value();
    into.skipped = sends_.skipped.value();
    into.failed = sends_.failed_entries.value();
    into.flushed = sends_.flushed.value();
    into.lost_events = sends_.events().lost.value() + failures_.lost.value();
    into.received = receives_.received.value();
    into.filled = receives_.filled.value();
    into.receive_failed = receives_.failed.value();
    into.receive_flushed = receives_.flushed.value();
}

void any_pair::dump_rings(rdma_dump& into) const
{
    into.number = number();
    into.state = state();
    into.service = service_;
    into.turns = turns.value();
    into.committed = sends_.committed();
    into.begun = sends_.next();
    into.completed = sends_.completed();
    into.receives_posted = receives_.waiting();
    refused_by_.for_each([&](refusal reason, std::uint64_t count) { into.refused_by.push_back({reason, count}); });
    dump_error(into);
}

/// The later of the last failed entry and the last refused request.
void any_pair::dump_error(rdma_dump& into) const
{
    const send_event& sent = sends_.events().last_failure();
    if (sent.reason != refusal::none) {
        into.last_error = fmt::format("entry at position {} failed: {}", sent.position, words_of(sent));
        into.last_error_ns = sent.time_ns;
    }
    const responder_failure* const refused = failures_.last();
    if (refused != nullptr && refused->time_ns >= into.last_error_ns) {
        into.last_error = explain(*refused);
        into.last_error_ns = refused->time_ns;
    }
}

} // namespace weftio::nic::soft
