#include "nic/soft/rdma/queue_pair.hpp"

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "nic/soft/rdma/shortcut.hpp"

namespace weftio::nic::soft {

namespace {

void add_requester(rdma_counters& to, const roce::requester& from) noexcept
{
    to.packets += from.packets.value();
    to.repeated += from.repeated.value();
    to.answers += from.answers.value();
    to.stale_answers += from.stale_answers.value();
    to.wrong_answers += from.wrong_answers.value();
    to.packet_seq_err += from.packet_seq_err.value();
    to.implied_nak_seq_err += from.implied_nak_seq_err.value();
    to.local_ack_timeout_err += from.local_ack_timeout_err.value();
    to.rnr_naks += from.rnr_naks.value();
    to.rnr_nak_retry_err += from.rnr_nak_retry_err.value();
}

void add_responder(rdma_counters& to, const roce::responder& from) noexcept
{
    to.requests += from.received.value();
    to.executed += from.executed.value();
    to.duplicate_request += from.duplicate.value();
    to.out_of_sequence += from.out_of_sequence.value();
    to.not_ready += from.not_ready.value();
    to.refused += from.refused.value();
    to.ignored += from.ignored.value();
}

} // namespace

queue_pair::connection::connection(const rdma_connection& to, queue_pair& owner)
    : front(to.path), responder(owner.service_, to, owner.memory_, owner.receives_, owner.commons_.work)
{
    set_path(to, owner.number());
}

void queue_pair::connection::set_path(const rdma_connection& to, std::uint32_t queue)
{
    path = to.path;
    path.l3 = net::is_ipv4(path.source) ? net::l3_kind::ipv4 : net::l3_kind::ipv6;
    path.source_port = source_port_between(queue, to.peer_queue);
    front = net::roce_front(path);
    ours = net::header_address_of(path.source);
    theirs = net::header_address_of(path.destination);
}

queue_pair::queue_pair(const pair_rings& rings, rdma_service service, const keys::nic_keys& keys, pair_commons& commons)
    : any_pair(rings, service, keys, commons), memory_(keys, as_, held_.get(), &staged_.peers())
{
    if (sends_.completes_each())
        rest(rings);
}

void queue_pair::modify(rdma_state to, const rdma_connection& how, const pair_rings& rings)
{
    const bool ends = to == rdma_state::reset || to == rdma_state::error;
    if (!ends && state() == rdma_state::error)
        return; // failed after the caller had checked: same as a failure right after the change of state
    recall();
    switch (to) {
        case rdma_state::reset:
            stop_silently();
            rest(rings);
            break;
        case rdma_state::init:
            if (state_ == rdma_state::reset)
                restart(rings);
            break;
        case rdma_state::ready_to_receive:
            connection_.emplace(how, *this);
            staged_.follow(&connection_->responder, &connection_->front);
            break;
        case rdma_state::ready_to_send: allow_sending(how); break;
        case rdma_state::send_queue_drained:
            connection_->requester->hold(true);
            // Path and responder change at once, requests when sending resumes.
            connection_->set_path(how, number());
            connection_->responder.set(how);
            break;
        case rdma_state::send_queue_error: break; // only a failed entry leads to SQE
        case rdma_state::error:
            if (state_ == rdma_state::reset)
                restart(rings);
            stop();
            break;
    }
    state_ = to;
}

/// To RTS: from RTR, or back from SQD or SQE. PSNs continue after the last one sent.
void queue_pair::allow_sending(const rdma_connection& how)
{
    std::optional<roce::requester>& requester = connection_->requester;
    connection_->responder.set(how);
    if (state_ == rdma_state::send_queue_error) {
        sends_.read_doorbell_record();
        sends_.flush_unread(); // flushes what was posted in SQE, even if no turn has read the doorbell record since
    }
    rdma_connection next = how;
    if (requester) {
        requester->hold(false);
        if (!requester->idle())
            return;
        add_requester(before_, *requester);
        next.send_psn = requester->next_psn();
    }
    requester.emplace(service_, next, sends_, commons_.work, sends_.next());
    sends_.mend();
}

bool queue_pair::draining() const noexcept
{
    return state_ == rdma_state::send_queue_drained && !connection_->requester->idle();
}

bool queue_pair::is_partner_of(const queue_pair& other) const noexcept
{
    if (!connection_ || !other.connection_ || peer_number() != other.number() || other.peer_number() != number())
        return false;
    const roce::roce_connection &here = connection_->responder.settings(),
                                &there = other.connection_->responder.settings();
    return address() == other.peer() && peer() == other.address() && service_ == other.service_ &&
           here.path_mtu == there.path_mtu && ((here.partition_key ^ there.partition_key) & 0x7fff) == 0;
}

bool queue_pair::is_from_peer(const net::packet_headers& headers) const noexcept
{
    return connection_ && connection_->theirs.is(headers.l3, headers.source) &&
           connection_->ours.is(headers.l3, headers.destination);
}

/// Whether the frame is addressed to this queue pair's MAC or to a group MAC. @pre connected()
bool queue_pair::is_to_our_mac(std::span<const std::uint8_t> frame) const noexcept
{
    const std::array<std::uint8_t, 6>& ours = connection_->path.source_mac;
    return std::memcmp(frame.data(), ours.data(), ours.size()) == 0 || (frame[0] & 1) != 0;
}

std::optional<claimed_address> queue_pair::claims() const noexcept
{
    if (!connection_)
        return std::nullopt;
    return claimed_address{.address = connection_->ours, .vlan = vlan()};
}

roce_verdict queue_pair::receive(const roce_arrival& arrival)
{
    if (!is_from_peer(arrival.headers))
        return roce_verdict::not_from_peer;
    if (!arrival.own && !is_to_our_mac(arrival.frame))
        return roce_verdict::other_mac;
    const net::roce_packet& packet = arrival.packet;
    if (!net::shape_of(packet.headers.bth.opcode).is_response())
        take_request(packet);
    else if (connection_->requester)
        connection_->requester->receive(packet, core::utc_stamp_ns());
    return roce_verdict::delivered;
}

/// First completes entries that the peer had acknowledged before it sent this request: programs rely on that order.
[[gnu::always_inline]] inline void queue_pair::execute_request(const net::roce_packet& packet)
{
    if (sends_.completes_each() && sends_.has_ended())
        sends_.publish();
    roce::responder& responder = connection_->responder;
    const std::uint64_t before = responder.refused.value();
    responder.receive(packet);
    if (const std::uint64_t refused = responder.refused.value() - before; refused != 0)
        refused_by_.add(responder.last_refused().reason, refused);
}

void queue_pair::take_request(const net::roce_packet& packet)
{
    if (staged_.used()) [[unlikely]]
        take_request_behind_copies(packet);
    else
        execute_request(packet);
}

[[gnu::cold]] void queue_pair::take_request_behind_copies(const net::roce_packet& packet)
{
    if (has_postponed() || (staged_.pending() && must_wait(packet)))
        return postpone(packet);
    connection_->responder.take_postponed();
    execute_request(packet);
    if (connection_->responder.take_postponed())
        postpone(packet);
}

/// Whether a request would be seen in memory of the host before bytes of earlier ones, for which copies are under way:
/// a WRITE or an atomic may be a flag for those bytes.
bool queue_pair::must_wait(const net::roce_packet& request) const noexcept
{
    const net::roce_headers& headers = request.headers;
    const net::roce_shape& shape = net::shape_of(headers.bth.opcode);
    if (shape.operation == net::roce_operation::write) {
        const roce::remote_range begun{headers.remote_key, headers.address, headers.dma_bytes};
        return !memory_.is_staged(shape.begins() ? begun : connection_->responder.rest_of_write(),
                                  access::remote_write);
    }
    return shape.operation == net::roce_operation::compare_swap || shape.operation == net::roce_operation::fetch_add;
}

[[gnu::cold, gnu::noinline]] bool queue_pair::has_copies_to_wait_for() const noexcept
{
    return any_pair::waits_for_copies() || has_postponed();
}

void queue_pair::postpone(const net::roce_packet& request)
{
    if (!postponed_)
        postponed_ = std::make_unique<postponed_requests>();
    if (postponed_->keep(request))
        return;
    connection_->responder.received.add(1);
    connection_->responder.ignored.add(1);
}

/// Executes what was postponed, up to the first request that still has to wait.
void queue_pair::take_postponed()
{
    while (has_postponed() && connection_) {
        const net::roce_packet& oldest = postponed_->oldest();
        if (staged_.pending() && must_wait(oldest))
            return staged_.submit();
        connection_->responder.take_postponed();
        execute_request(oldest);
        if (connection_->responder.take_postponed())
            return;
        postponed_->drop_oldest();
    }
}

/// RDMA step 2: sends answers first, because the peer waits for them.
unsigned queue_pair::turn(std::uint32_t most)
{
    sends_.read_doorbell_record();
    if (deferred_ && commons_.shares.defers(number()))
        return turn_of_deferred(most);
    deferred_ = false;
    turns.add(1);
    if (has_overrun())
        sends_.overrun();
    if (staged_.used()) [[unlikely]]
        take_up_copies();
    unsigned moved = 0;
    if (connection_) {
        path_sink sink(commons_.sender, connection_->path, connection_->front, peer_at_own_port_);
        moved += exchange(sink, {std::min(most, packets_of_a_turn), commons_.shares.bytes_for(number())});
    } else if (failed()) {
        flush_both();
    }
    moved += sends_.publish();
    const bool hurries = is_in_a_hurry();
    commons_.shares.count(moved != 0, hurries);
    if (moved != 0 && !hurries && commons_.shares.are_short() && has_much_to_send())
        defer();
    if (moved != 0 || !waits_for_peer())
        waited_ = 0;
    else
        waited_ = connection_->requester->waits_after_rnr_nak() ? turns_waiting : waited_ + 1;
    return moved;
}

/// Answers leave: the peer waits for them, and repeats what is not answered in time.
unsigned queue_pair::turn_of_deferred(std::uint32_t most)
{
    if (staged_.used()) [[unlikely]]
        take_up_copies();
    if (!connection_ || connection_->responder.idle())
        return 0;
    path_sink sink(commons_.sender, connection_->path, connection_->front, peer_at_own_port_);
    return connection_->responder.send(sink, {std::min(most, packets_of_a_turn), commons_.shares.bytes_for(number())});
}

/// What was to be done behind copies is done, as far as they are made.
[[gnu::cold]] void queue_pair::take_up_copies()
{
    settle();
    end_failed_copy();
    take_postponed();
    const bool answers = connection_ && (!connection_->responder.idle() || !net::is_reliable(service_));
    staged_.begin_sending(answers);
}

/// A copy was not made: the side that has asked for it ends.
void queue_pair::end_failed_copy()
{
    if (!staged_.ends_now() || !connection_)
        return;
    const failed_copy& failed = staged_.failure();
    std::optional<roce::requester>& requester = connection_->requester;
    roce::responder& responder = connection_->responder;
    const auto operation = failed.reads ? roce::roce_operation::read_request : roce::roce_operation::write;
    if (failed.by_peer) {
        if (!responder.failed())
            responder.fail(failed.why, operation, failed.psn);
    } else if (requester) { // or nobody knows who has asked
        if (!requester->failed())
            requester->fail(failed.why);
    } else if (!responder.failed()) {
        responder.stop();
    }
}

/// Whether the turn has left nothing to send, and little is in flight: the sooner the next turn comes, the sooner the
/// kernel continues.
bool queue_pair::is_in_a_hurry() const noexcept
{
    return connection_ && connection_->requester && sends_.next() == sends_.committed() && waited_ < turns_waiting &&
           (requested_ != 0 || !connection_->requester->idle()) && connection_->requester->is_short_of_work();
}

/// Whether the turn has left more than a few entries or the rest of a long message to send, or much in flight.
bool queue_pair::has_much_to_send() const noexcept
{
    constexpr std::uint32_t few = 4;
    return connection_ && connection_->requester &&
           (sends_.committed() - sends_.next() > few || !connection_->requester->is_short_of_work());
}

/// Sends no requests, only answers, until turn_shares chooses this queue pair or nobody is in a hurry.
void queue_pair::defer() noexcept
{
    deferred_ = true;
    commons_.shares.defer(number());
}

void queue_pair::recall() noexcept
{
    if (std::exchange(deferred_, false))
        commons_.shares.recall(number());
}

unsigned queue_pair::exchange(roce::packet_sink& sink, roce::allowance most)
{
    end_when_broken();
    unsigned moved = connection_->responder.send(sink, most);
    requested_ = 0;
    if (connection_->requester) {
        requested_ = request(sink, most);
        moved += requested_;
    }
    end_when_broken();
    return moved;
}

/// Sends packets for what the partner cannot execute at once, and for all that follows in the same turn.
unsigned queue_pair::request(roce::packet_sink& sink, roce::allowance most)
{
    roce::requester& requester = *connection_->requester;
    const std::uint64_t now = core::utc_stamp_ns();
    if (partner_ == nullptr)
        return requester.send(sink, most, now);
    const unsigned before = most.packets;
    const shortcut::asking_side from{requester, sends_, commons_.work.found, commons_.sender};
    const shortcut::executing_side to{partner_->connection_->responder, partner_->memory_, partner_->receives_,
                                      partner_->sends_};
    const bool needs_packets = shortcut(from, to, now).execute_all(most);
    const unsigned copied = before - most.packets, sent = needs_packets ? requester.send(sink, most, now) : 0;
    if (partner_->has_overrun()) {
        partner_->sends_.overrun();
        partner_->end_when_broken();
    }
    return copied + sent;
}

/// Whether entries are in flight and none can continue before an answer comes or a timeout expires. @pre a turn has
/// moved nothing
bool queue_pair::waits_for_peer() const noexcept
{
    return connection_ && connection_->requester && !connection_->requester->idle() && !failed() &&
           connection_->responder.idle() && !commons_.sender.is_full() && !sends_.is_held() &&
           !sends_.waits_for_engines() && !waits_for_copies();
}

std::uint64_t queue_pair::deadline_ns() const noexcept
{
    if (deferred_)
        return UINT64_MAX;
    return only_waits() ? connection_->requester->deadline_ns() : 0;
}

/// If requester, responder or a doorbell record has failed, stops requester and responder. Later entries are flushed.
void queue_pair::end_when_broken()
{
    std::optional<roce::requester>& requester = connection_->requester;
    roce::responder& responder = connection_->responder;
    if (!failed() && !(requester && requester->failed()) && !responder.failed() && !receives_.record_refused())
        return;
    newly_failed_ = newly_failed_ || (state_ != rdma_state::error && state_ != rdma_state::send_queue_error);
    if (ends_sends_only()) {
        state_ = rdma_state::send_queue_error;
        return sends_.flush_unread();
    }
    state_ = rdma_state::error;
    if (!failed())
        report_responder_failure();
    if (requester && !requester->failed())
        requester->stop();
    if (!responder.failed())
        responder.stop();
    flush_both();
}

/// Whether a failed entry leads to SQE, which verbs define for an unreliable service: receiving continues.
bool queue_pair::ends_sends_only() const noexcept
{
    return sends_.completes_each() && !net::is_reliable(service_) && state_ != rdma_state::error &&
           connection_->requester && connection_->requester->failed() && !connection_->responder.failed() &&
           !receives_.record_refused();
}

/// Reports a failed responder to the host, and to the kernel by the send completion.
void queue_pair::report_responder_failure() noexcept
{
    roce::refused_request refused = connection_->responder.last_refused();
    if (receives_.record_refused())
        refused.reason = refusal::wrong_doorbell;
    else if (!connection_->responder.failed() || refused.reason == refusal::none)
        return;
    report_failed_receive(refused);
}

bool queue_pair::idle() const noexcept
{
    if ((connection_ && !connection_->responder.idle()) || waits_for_copies())
        return false;
    return sends_.idle() || (!deferred_ && only_waits() && connection_->requester->deadline_ns() == 0); // no timeout
}

bool queue_pair::is_held() const noexcept
{
    return sends_.is_held() && (!connection_ || (connection_->responder.idle() &&
                                                 !(connection_->requester && !connection_->requester->idle())));
}

void queue_pair::fall_asleep() noexcept
{
    if (!deferred_) // such a one is woken soon
        any_pair::fall_asleep();
    if (!connection_)
        return;
    connection_->responder.rest();
    if (connection_->requester)
        connection_->requester->rest();
}

void queue_pair::stop()
{
    recall();
    sends_.read_doorbell_record();
    state_ = rdma_state::error; // not SQE, in which messages still arrive
    sends_.break_off();
    if (connection_)
        end_when_broken();
    flush_both();
    sends_.collect();
}

void queue_pair::restart(const pair_rings& rings)
{
    before_ = counters();
    staged_.follow(nullptr, nullptr);
    postponed_.reset();
    connection_.reset();
    partner_ = nullptr;
    recall();
    waited_ = 0;
    restart_rings(rings);
}

rdma_counters queue_pair::counters() const noexcept
{
    rdma_counters all = before_;
    count_rings(all);
    if (connection_) {
        if (connection_->requester)
            add_requester(all, *connection_->requester);
        add_responder(all, connection_->responder);
    }
    return all;
}

} // namespace weftio::nic::soft
