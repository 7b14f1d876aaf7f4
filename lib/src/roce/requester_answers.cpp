// How a requester processes the answers of its peer.
#include "roce/requester.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/refusal.hpp"
#include "roce/staged_memory.hpp"

namespace weftio::roce {

using namespace net;

/// RDMA step 13: accepts an answer to a request that was sent and has not been answered (IBTA 9.7.6.1.1). A lower PSN
/// is a late answer, a higher one is wrong.
void requester::receive(const roce_packet& packet, std::uint64_t now)
{
    answers.add(1);
    const roce_headers& headers = packet.headers;
    const roce_shape& shape = shape_of(headers.bth.opcode);
    const bool fits = !failed_ && packet.form == roce_refusal::none && reliable() && shape.is_response() &&
                      same_partition(settings_, headers);
    if (!fits || psn_distance(sent_, headers.bth.psn) >= 0)
        wrong_answers.add(1);
    else if (psn_distance(acknowledged_, headers.bth.psn) < 0)
        stale_answers.add(1);
    else
        take_answer(packet, shape, now);
}

void requester::take_answer(const roce_packet& packet, const roce_shape& shape, std::uint64_t now)
{
    switch (shape.operation) {
        case roce_operation::acknowledge: return take_acknowledge(packet.headers, now);
        case roce_operation::read_response: return take_read_response(packet, shape, now);
        default: return take_atomic(packet, now);
    }
}

void requester::take_acknowledge(const roce_headers& headers, std::uint64_t now)
{
    switch (kind_of(headers.syndrome)) {
        case aeth_kind::acknowledge:
            if (!acknowledge_to(psn_add(headers.bth.psn, 1), now))
                repeat_for_gap(headers.bth.psn);
            return;
        case aeth_kind::rnr_nak: return take_not_ready(headers, now);
        case aeth_kind::nak: return take_nak(headers, now);
        case aeth_kind::reserved: return wrong_answers.add(1);
    }
}

/// RDMA step 14: the peer has received everything before `psn`. A READ or an atomic completes only by its own answer,
/// so this stops at one without an answer. @return whether `psn` was reached
bool requester::acknowledge_to(std::uint32_t psn, std::uint64_t now)
{
    const std::uint32_t before = acknowledged_;
    std::uint32_t number = messages_.first();
    while (number != messages_.end() && !messages_.at(number).wants_result() &&
           offset_in(messages_.at(number), psn) >= messages_.at(number).packets)
        ++number;
    const bool stops = number != messages_.end() && messages_.at(number).wants_result();
    if (!stops)
        acknowledged_ = psn;
    else if (number != messages_.first())
        acknowledged_ = messages_.at(number).first_psn;
    if (acknowledged_ != before)
        retire();
    if (acknowledged_ != before && !failed_)
        progressed((acknowledged_ - before) & psn_mask, now);
    return acknowledged_ == psn;
}

void requester::progressed(std::uint32_t packets, std::uint64_t now)
{
    round_trip_.end(acknowledged_, now);
    if (patience_.has_probed())
        round_trip_.back_off();
    if (psn_distance(acknowledged_, parts_end_) < 0)
        parts_end_ = acknowledged_;
    patience_.progress(packets, acknowledged_ == sent_);
    if (in_flight() != 0)
        patience_.expect_answer(round_trip_.limit(), now);
}

bool requester::is_done(const message& oldest) const noexcept
{
    return oldest.refused == refusal::none &&
           (oldest.is_local() ? oldest.executed : offset_in(oldest, acknowledged_) >= oldest.packets);
}

/// RDMA step 15: completes the finished messages in order, and moves the cursor past them.
void requester::retire()
{
    while (!messages_.empty() && is_done(messages_.oldest())) {
        completed.add(1);
        entries_.end(messages_.oldest(), refusal::none);
        messages_.pop();
    }
    const auto behind = static_cast<std::int32_t>(messages_.first() - cursor_);
    if (behind > 0) {
        cursor_ = messages_.first();
        packet_ = 0;
    }
    if (messages_.empty())
        return;
    if (messages_.oldest().refused != refusal::none)
        return fail(messages_.oldest().refused);
    if (cursor_ == messages_.first())
        packet_ = std::max(packet_, offset_in(messages_.oldest(), acknowledged_));
}

/// Sends everything again from the oldest unacknowledged packet.
void requester::go_back() noexcept
{
    cursor_ = messages_.first();
    packet_ = messages_.empty() ? 0 : offset_in(messages_.oldest(), acknowledged_);
    without_request_ = 0;
    round_trip_.cancel();
}

/// Sends the last request packet again; of a READ, all that it asks for.
void requester::step_back() noexcept
{
    round_trip_.cancel();
    std::uint32_t number = cursor_, end = packet_;
    const std::uint32_t first = messages_.first();
    while (end == 0 && number != first)
        end = messages_.at(--number).packets; // a local operation has none
    const std::uint32_t begin = number == first && end != 0 ? offset_in(messages_.oldest(), acknowledged_) : 0;
    if (end <= begin)
        return;
    cursor_ = number;
    packet_ = end - 1;
    if (messages_.at(number).operation == roce_operation::read_request)
        packet_ = std::max(begin, messages_.at(number).in_parts ? packet_ - packet_ % read_part_ : 0);
}

void requester::repeat_or_give_up(refusal reason_to_give_up, bool again)
{
    if (!again)
        return fail(reason_to_give_up);
    go_back();
}

/// A later answer came first: the answer of a READ or an atomic was lost (IBTA 9.7.5.2.8, implied NAK). This is
/// repeated once. An answer with a lower PSN than the last one is one to that repeat, of which the begin was lost, too:
/// it is repeated again. Otherwise, the clock repeats it.
void requester::repeat_for_gap(std::uint32_t psn)
{
    const bool of_repeat = psn_distance(std::exchange(gap_psn_, psn), psn) < 0;
    if (failed_)
        return;
    if (patience_.see_gap()) {
        implied_nak_seq_err.add(1);
        repeat_or_give_up(refusal::no_answer, patience_.retry());
    } else if (of_repeat) {
        implied_nak_seq_err.add(1);
        patience_.narrow();
        go_back();
    }
}

/// RDMA step 14: a NAK acknowledges all packets before its PSN (IBTA 9.7.5.2.8). A sequence error starts a retry; any
/// other NAK fails the queue.
void requester::take_nak(const roce_headers& headers, std::uint64_t now)
{
    const bool reached = acknowledge_to(headers.bth.psn, now);
    if (failed_)
        return;
    if (headers.syndrome == nak_syndrome(roce_nak::sequence_error)) {
        if (!reached)
            return repeat_for_gap(headers.bth.psn);
        if (in_flight() == 0)
            return stale_answers.add(1); // nothing was sent since the retry
        packet_seq_err.add(1);
        return repeat_or_give_up(refusal::no_answer, patience_.retry());
    }
    fail(core::reason_of_nak(headers.syndrome));
}

/// RDMA step 14: the peer has no receive entry (RNR NAK). Waits as long as the NAK says, then repeats from that PSN.
void requester::take_not_ready(const roce_headers& headers, std::uint64_t now)
{
    if (!acknowledge_to(headers.bth.psn, now))
        return repeat_for_gap(headers.bth.psn);
    if (failed_ || in_flight() == 0)
        return stale_answers.add(1);
    rnr_naks.add(1);
    const bool again = patience_.wait_for_receiver(value_of(headers.syndrome), now);
    rnr_nak_retry_err.add(!again);
    repeat_or_give_up(refusal::not_ready, again);
}

/// Whether `psn` is the next answer that the oldest message waits for. An answer acknowledges all earlier requests.
bool requester::answers_oldest(std::uint32_t psn, std::uint64_t now)
{
    if (!acknowledge_to(psn, now)) {
        repeat_for_gap(psn);
        return false;
    }
    return !failed_ && !messages_.empty();
}

/// RDMA step 14: a READ response packet. Its offset follows from its PSN, so first and middle are handled alike, as
/// are last and only.
void requester::take_read_response(const roce_packet& packet, const roce_shape& shape, std::uint64_t now)
{
    const std::uint32_t psn = packet.headers.bth.psn, mtu = settings_.path_mtu;
    if (shape.has_aeth && kind_of(packet.headers.syndrome) != aeth_kind::acknowledge)
        return wrong_answers.add(1);
    if (!answers_oldest(psn, now))
        return;
    const message& oldest = messages_.oldest();
    const std::uint32_t index = offset_in(oldest, psn);
    const roce_segment part = segment_of(oldest.bytes, mtu, index);
    const bool fits = oldest.operation == roce_operation::read_request && packet.payload.size() == part.bytes &&
                      (index + 1 != oldest.packets || shape.ends());
    if (!fits)
        return fail(refusal::bad_response);
    take_data(psn, packet.payload, part.offset, now);
}

void requester::take_atomic(const roce_packet& packet, std::uint64_t now)
{
    const roce_headers& headers = packet.headers;
    if (kind_of(headers.syndrome) != aeth_kind::acknowledge)
        return wrong_answers.add(1);
    if (!answers_oldest(headers.bth.psn, now))
        return;
    const message& oldest = messages_.oldest();
    if (!oldest.wants_result() || oldest.operation == roce_operation::read_request)
        return fail(refusal::bad_response);
    std::uint8_t original[sizeof headers.original];
    std::memcpy(original, &headers.original, sizeof original);
    take_data(headers.bth.psn, original, 0, now);
}

/// Writes a part of an answer, the packet `psn`, to the local memory of the oldest message.
void requester::take_data(std::uint32_t psn, piece bytes, std::uint32_t offset, std::uint64_t now)
{
    if (!bytes.empty()) {
        if (const refusal why = entries_.scatter(messages_.oldest(), offset, bytes); why != refusal::none)
            return why == not_now ? void() : fail(why); // without room, as if it were lost
    }
    acknowledged_ = psn_add(psn, 1);
    retire();
    if (!failed_)
        progressed(1, now);
}

} // namespace weftio::roce
