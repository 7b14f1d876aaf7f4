#include "roce/requester.hpp"

#include <algorithm>
#include <utility>

namespace weftio::roce {

using namespace net;

namespace {

constexpr unsigned packets_without_request = 64;
/// Limits of the sequence numbers that one READ request takes, and of those in flight: less than half of all (IBTA
/// 9.7.3.1).
constexpr std::uint32_t longest_read = 1u << 22, most_psns = (1u << 23) - 1;

} // namespace

requester::requester(rdma_service service, const roce_connection& settings, send_entries& entries, workspace& shared,
                     std::uint32_t first_entry)
    : settings_(settings), entries_(entries), pieces_(shared.found), service_(service), messages_(shared.pool),
      patience_(settings.timeout, settings.retry_count, settings.rnr_retry,
                std::clamp<std::uint32_t>(settings.window, 1, message_ring::most)),
      next_entry_(first_entry), acknowledged_(settings.send_psn & psn_mask), sent_(acknowledged_),
      parts_end_(acknowledged_), read_part_(std::clamp(64u / std::max<std::uint32_t>(settings.most_reads, 1), 8u, 32u))
{
    messages_.begin_at(acknowledged_);
}

unsigned requester::send(packet_sink& sink, allowance most, std::uint64_t now)
{
    const unsigned before = most.packets;
    check_clock(now, &sink);
    while (const message* next = next_request(most, now)) {
        const std::uint32_t flying = in_flight();
        if (!may_send(flying))
            break;
        const bool reads = next->operation == roce_operation::read_request;
        if (!(reads ? send_read(sink, most, now) : send_packet(sink, most, flying, now)))
            break;
    }
    return before - most.packets;
}

/// RDMA step 3: repeats packets whose timeout has expired (IBTA 9.7.6.1.3), and earlier one packet, when an answer
/// takes longer than answers of this peer do.
void requester::check_clock(std::uint64_t now, packet_sink* sink)
{
    if (failed_)
        return;
    if (patience_.timed_out(now)) {
        if (sink != nullptr && is_late(*sink, timed_out_))
            return patience_.wait_again(now);
        local_ack_timeout_err.add(1);
        repeat_or_give_up(refusal::no_answer, patience_.retry());
    } else if (patience_.is_overdue(now)) {
        if (sink != nullptr && is_late(*sink, overdue_)) {
            round_trip_.cancel(); // the time of a peer without a core is no round trip
            return patience_.expect_later(round_trip_.limit(), now);
        }
        patience_.probe() ? step_back() : go_back();
    }
}

/// Whether no answer can have come, because the peer has not read all that had been sent when the answer to the packet
/// that is the oldest now was first missed. It has had no core, or was stopped: a repeat would change nothing.
bool requester::is_late(packet_sink& sink, missed_answer& of) noexcept
{
    if (std::exchange(of.psn, acknowledged_) != acknowledged_)
        of.until = 0;
    const bool late = sink.is_under_way(of.until);
    if (!late)
        of.until = 0;
    return late;
}

const message* requester::next_request(allowance& most, std::uint64_t now)
{
    while (!most.empty() && !failed_ && !patience_.waits(now) && admit()) {
        message& next = messages_.at(cursor_);
        if (!next.is_local())
            return &next;
        if (!execute(next, most))
            break;
    }
    return nullptr;
}

/// RDMA step 4: makes sure that there is a message at the cursor; reads the next entry if there is none.
bool requester::admit()
{
    if (cursor_ != messages_.end())
        return messages_.at(cursor_).refused == refusal::none;
    if (held_ || !messages_.make_room())
        return false; // without memory, retried in the next turn
    message& more = messages_.draft();
    more.entry = next_entry_;
    if (!entries_.read(next_entry_, more))
        return false;
    entries_read.add(1);
    next_entry_ += more.blocks;
    refusal refused = std::exchange(more.refused, refusal::none);
    if (more.bytes > largest_message_bytes && refused == refusal::none)
        refused = more.wants_result() ? refusal::read_too_long : refusal::message_too_long;
    const bool needs_rc = more.wants_result() || more.extra == roce_extra::invalidate;
    if (needs_rc && !reliable() && refused == refusal::none)
        refused = refusal::unreliable;
    if (refused == refusal::none && !more.is_local())
        more.packets = packets_of(more.bytes, settings_.path_mtu);
    messages_.add(); // `more` may have moved
    if (refused == refusal::none)
        return true;
    refuse(refused);
    return false;
}

/// A local operation sends no packet. It is executed once, when the cursor first reaches it; a retry passes over it.
bool requester::execute(message& local, allowance& most)
{
    if (!local.executed) {
        if (waits_at_fence(local))
            return false;
        most.spend(0);
        local.executed = true;
        if (const refusal why = entries_.execute(local); why != refusal::none) {
            refuse(why);
            return false;
        }
    }
    if (!entries_.in_force())
        return false;
    ++cursor_;
    packet_ = 0;
    retire();
    return true;
}

/// The message at the cursor cannot be sent. It fails once all earlier messages have completed.
void requester::refuse(refusal why)
{
    messages_.at(cursor_).refused = why;
    if (cursor_ == messages_.first())
        return fail(why);
    patience_.see_gap(); // earlier messages may have asked for no ACK; their repeats ask
    go_back();
}

std::uint32_t requester::in_flight() noexcept
{
    if (messages_.empty())
        return 0;
    const message& oldest = messages_.oldest();
    const std::uint32_t done = offset_in(oldest, acknowledged_);
    const std::uint32_t whole = messages_.packets_before(cursor_) - oldest.packets_before;
    if (cursor_ == messages_.end() || !messages_.at(cursor_).wants_result())
        return whole + packet_ - (oldest.wants_result() ? 0 : done);
    return whole + is_read_in_part() - (oldest.wants_result() ? 0 : done);
}

/// Whether part of the READ at the cursor was requested and has not arrived.
bool requester::is_read_in_part() noexcept
{
    return packet_ != (cursor_ == messages_.first() ? offset_in(messages_.oldest(), acknowledged_) : 0);
}

/// Packets that the next READ request asks for; 0: none now. The peer sends responses at full speed. After a loss, a
/// new READ is therefore split into parts, and the window limits their responses as it limits requests. Parts end at
/// multiples of read_part_, so that a repeat asks for no more than an earlier request did: peers drop others. And they
/// drop a repeat that begins before an earlier repeat of the same request, as Linux's rdma_rxe does. So of what was
/// requested whole, a window at most is repeated, and the rest only when all of it has arrived.
std::uint32_t requester::packets_of_next_read() noexcept
{
    message& next = messages_.at(cursor_);
    const std::uint32_t left = next.packets - packet_, window = patience_.window(), flying = answers_in_flight();
    const bool repeats = cursor_psn() != sent_;
    if (!repeats && packet_ == 0)
        next.in_parts = patience_.is_narrow();
    if (!repeats && !next.in_parts)
        return std::min(left, longest_read);
    if (!next.in_parts && is_read_in_part())
        return 0;
    const std::uint32_t count = std::min(left, next.in_parts ? read_part_ - packet_ % read_part_ : window);
    return flying == 0 || flying + (next.in_parts ? count : count / 2) <= window ? count : 0;
}

/// Whether the READ at the cursor is requested in parts: as before, or, if it is new, while the window is narrow.
bool requester::asks_in_parts() noexcept
{
    return packet_ == 0 && cursor_psn() == sent_ ? patience_.is_narrow() : messages_.at(cursor_).in_parts;
}

/// Sequence numbers of READs and atomics in flight, and of what is between them.
std::uint32_t requester::answers_in_flight() noexcept
{
    return reads_in_flight() == 0 && !is_read_in_part() ? 0 : (cursor_psn() - acknowledged_) & psn_mask;
}

std::uint32_t requester::reads_in_flight() noexcept
{
    return messages_.reads_before(cursor_) - messages_.reads_before(messages_.first());
}

/// Whether the message waits for earlier READs and atomics.
bool requester::waits_at_fence(const message& next) noexcept
{
    return reliable() && next.fence && reads_in_flight() != 0;
}

/// RDMA step 5: checks the window, the limit of READs and atomics, and the fence.
bool requester::may_send(std::uint32_t flying) noexcept
{
    if (!reliable())
        return true;
    if (flying >= patience_.window())
        return false;
    const message& next = messages_.at(cursor_);
    if (waits_at_fence(next))
        return false;
    if (!next.wants_result())
        return true;
    const bool in_parts = (next.operation == roce_operation::read_request && asks_in_parts()) ||
                          psn_distance(acknowledged_, parts_end_) > 0;
    const std::uint32_t parts = in_parts ? (answers_in_flight() + read_part_ - 1) / read_part_ : 0;
    return reads_in_flight() + parts < std::max<std::uint32_t>(settings_.most_reads, 1);
}

/// Asks for an ACK on READs and atomics, on the last message of a push, on every 64th packet, and on the last packet
/// before the window or the message ring is full. While messages are repeated, asks at the end of each. After a loss,
/// asks four times in a window, so that packets follow the one that asks, and show its loss.
bool requester::asks_for_ack(bool ends, std::uint32_t flying) noexcept
{
    const message& next = messages_.at(cursor_);
    return reliable() &&
           (next.wants_result() || patience_.has_probed() || (ends && (!next.more || patience_.repeating())) ||
            without_request_ + 1 >= most_without_request() || flying + 1 >= patience_.window() ||
            (ends && messages_.full()));
}

unsigned requester::most_without_request() const noexcept
{
    return patience_.is_narrow() ? std::max(patience_.window() / 4, 1u) : packets_without_request;
}

/// RDMA step 6: sends one packet of a SEND, WRITE or atomic.
/// @param flying  in_flight()
bool requester::send_packet(packet_sink& sink, allowance& most, std::uint32_t flying, std::uint64_t now)
{
    const message& next = messages_.at(cursor_);
    const bool atomic = next.wants_result();
    const roce_segment part = atomic ? roce_segment{} : segment_of(next.bytes, settings_.path_mtu, packet_);
    const bool ends = part.position == roce_position::last || part.position == roce_position::only;
    const auto opcode =
        opcode_of(opcodes_of(service_), next.operation, part.position, ends && !atomic ? next.extra : roce_extra::none);
    pieces_.count = 0;
    refusal found = opcode ? refusal::none : refusal::unknown_opcode;
    if (found == refusal::none && part.bytes != 0)
        found = entries_.gather(next, part.offset, part.bytes, pieces_);
    if (found != refusal::none) {
        refuse(found);
        return false;
    }
    roce_headers headers{.bth = bth_to(settings_, *opcode, cursor_psn()),
                         .address = next.remote_address,
                         .remote_key = next.remote_key,
                         .dma_bytes = next.bytes,
                         .swap_or_add = next.swap_or_add,
                         .compare = next.compare,
                         .immediate = next.immediate_or_key,
                         .invalidate_key = next.immediate_or_key};
    headers.bth.ack_request = asks_for_ack(ends, flying);
    headers.bth.solicited = ends && next.solicited;
    if (!sink.send(headers, pieces_.all())) {
        if (sink.payload_gone())
            refuse(refusal::memory_gone);
        return false;
    }
    without_request_ = headers.bth.ack_request ? 0 : without_request_ + 1;
    if (headers.bth.ack_request && !patience_.has_probed())
        round_trip_.begin(cursor_psn(), now);
    most.spend(part.bytes);
    sent_one(1, 1, now);
    return true;
}

/// RDMA step 6: sends a READ request, from the first response packet that has not arrived (IBTA 9.7.5.1.4).
bool requester::send_read(packet_sink& sink, allowance& most, std::uint64_t now)
{
    const message& next = messages_.at(cursor_);
    const std::uint32_t count = packets_of_next_read(), psn = cursor_psn();
    if (count == 0 || ((psn + count - acknowledged_) & psn_mask) > most_psns)
        return false;
    const std::uint32_t mtu = settings_.path_mtu, from = packet_ * mtu;
    const std::uint32_t bytes = packet_ + count == next.packets ? next.bytes - from : count * mtu;
    roce_headers headers{.bth = bth_to(settings_, roce_opcode::rc_read_request, psn),
                         .address = next.remote_address + from,
                         .remote_key = next.remote_key,
                         .dma_bytes = bytes};
    headers.bth.ack_request = true;
    headers.bth.solicited = next.solicited;
    if (!sink.send(headers, {}))
        return false;
    without_request_ = 0;
    if (!patience_.has_probed())
        round_trip_.begin(psn, now);
    if (next.in_parts)
        parts_end_ = psn_add(psn, count);
    most.spend(0);
    sent_one(1, count, now);
    return true;
}

/// Moves the cursor forward.
void requester::sent_one(std::uint32_t count, std::uint32_t psns, std::uint64_t now)
{
    packets.add(count);
    packet_ += psns;
    const std::uint32_t psn = cursor_psn();
    if (psn_distance(sent_, psn) > 0)
        sent_ = psn;
    else
        repeated.add(count);
    if (packet_ == messages_.at(cursor_).packets) {
        ++cursor_;
        packet_ = 0;
    }
    if (reliable())
        return patience_.expect_answer(round_trip_.limit(), now);
    acknowledged_ = psn; // UC: a sent message is complete (IBTA 9.8.3)
    retire();
}

/// A READ in parts is one request.
void requester::skip(std::uint32_t count, std::uint64_t now)
{
    const bool reads = messages_.at(cursor_).operation == roce_operation::read_request;
    sent_one(reads ? packet_ == 0 : count, count, now);
    if (!reliable())
        return;
    answers.add(reads ? count : 1);
    acknowledged_ = cursor_psn();
    patience_.progress(count, acknowledged_ == sent_);
    round_trip_.cancel();
    retire();
}

requester_standing requester::standing() noexcept
{
    return {.acknowledged = acknowledged_,
            .next = cursor_psn(),
            .sent = sent_,
            .packets_in_flight = in_flight(),
            .window = patience_.window(),
            .messages_in_flight = messages_.end() - messages_.first(),
            .retries_left = patience_.retries_left(),
            .rnr_retries_left = patience_.rnr_retries_left(),
            .waits_for_receiver = patience_.waits_for_receiver(),
            .deadline_ns = deadline_ns()};
}

void requester::stop()
{
    end_all(refusal::flushed);
}

/// Ends the queue: the oldest message ends with `of_oldest`, the others are flushed.
void requester::end_all(refusal of_oldest)
{
    failed_ = true;
    for (refusal why = of_oldest; !messages_.empty(); why = refusal::flushed) {
        (why == refusal::flushed ? flushed : failed_entries).add(1);
        entries_.end(messages_.oldest(), why);
        messages_.pop();
    }
    cursor_ = messages_.end();
    packet_ = 0;
}

} // namespace weftio::roce
