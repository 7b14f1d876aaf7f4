#include "nic/soft/rdma/shortcut.hpp"

#include <algorithm>

namespace weftio::nic::soft {

/// While packets to the partner are in flight, the next requests wait for the answers, and then are copies. What the
/// partner has executed without being asked for an ACK is answered here.
bool shortcut::execute_all(roce::allowance& most)
{
    roce::requester& requester = from_.requester;
    requester.check_clock(now_);
    while (const roce::message* next = requester.next_request(most, now_)) {
        if (requester.in_flight() != 0) {
            if (to_.responder.expected_psn() != requester.cursor_psn())
                return true;
            if (!requester.end_unasked(now_))
                return false;
        } else if (!copy(*next, most) && !(lacks_entry_ && requester.sends_alone() && repeat_later())) {
            return true;
        }
    }
    return false;
}

/// Has the partner execute the next packets of the message. First completes entries that this queue pair had
/// acknowledged before it asked: programs rely on that order.
bool shortcut::copy(const roce::message& next, roce::allowance& most)
{
    const std::uint32_t psn = from_.requester.cursor_psn(), mtu = to_.responder.settings().path_mtu;
    const std::uint32_t from = (psn - next.first_psn) & net::psn_mask, left = next.packets - from;
    std::uint32_t count = std::min({most_packets_at_once, left, most.packets});
    if (count != 1)
        count = std::clamp(most.bytes / mtu, 1u, count);
    const part one{next, net::segment_of(next.bytes, mtu, from, count), from == 0, count == left};
    lacks_entry_ = false;
    if (to_.sends.completes_each() && to_.sends.has_ended())
        to_.sends.publish();
    if (!to_.responder.expects(next, psn) || !execute(one))
        return false;
    to_.responder.skip(next, count, one.at.offset + one.at.bytes);
    from_.sender.count_copy(one.at.bytes);
    most.spend(one.at.bytes, count);
    if (unwritten_ == refusal::none)
        from_.requester.skip(count, now_);
    else
        from_.requester.fail(unwritten_);
    return true;
}

/// Eight bytes are one store, so they must be one piece.
bool shortcut::execute(const part& one)
{
    if (one.of.operation == roce::roce_operation::read_request)
        return read(one);
    if (one.of.wants_result())
        return change(one.of);
    if (one.of.extra == net::roce_extra::invalidate)
        return false;
    roce::pieces& found = from_.pieces;
    found.count = 0;
    if (one.at.bytes != 0 && from_.entries.gather(one.of, one.at.offset, one.at.bytes, found) != refusal::none)
        return false;
    return (found.count < 2 || one.at.bytes != sizeof(std::uint64_t)) && take(one, found.all());
}

bool shortcut::read(const part& one)
{
    const roce::message& of = one.of;
    const roce::remote_range range{of.remote_key, of.remote_address + one.at.offset, one.at.bytes};
    roce::piece bytes;
    return allows(access::remote_read, of, !one.begins || one.ends) &&
           (of.bytes == 0 || (to_.memory.read(range, bytes) == refusal::none &&
                              from_.entries.scatter(of, one.at.offset, bytes) == refusal::none));
}

/// Once an atomic has changed the word, no packet may ask for it again: if its result cannot be written, the queue pair
/// that asks fails.
bool shortcut::change(const roce::message& of)
{
    std::uint64_t *word = nullptr, original = 0;
    if (of.remote_address % sizeof original != 0 || !allows(access::remote_atomic, of, true) ||
        to_.memory.word(of.remote_key, of.remote_address, word) != refusal::none ||
        !roce::change(word, of.operation, of.compare, of.swap_or_add, original))
        return false;
    unwritten_ = from_.entries.scatter(of, 0, {reinterpret_cast<const std::uint8_t*>(&original), sizeof original});
    return true;
}

/// @param checked  the range of the message needs no check here
bool shortcut::allows(access needed, const roce::message& of, bool checked)
{
    const roce::roce_connection& settings = to_.responder.settings();
    return (settings.rights & needed) == needed &&
           (needed == access::remote_write || settings.most_reads_of_peer != 0) &&
           (checked || to_.memory.check({of.remote_key, of.remote_address, of.bytes}, needed) == refusal::none);
}

/// Executes a part of a SEND or WRITE. Checks the whole range of a WRITE before a byte is written; one memory.write()
/// of all of it checks it, too.
bool shortcut::take(const part& one, std::span<const roce::piece> payload)
{
    const roce::message& of = one.of;
    const bool sends = of.operation == roce::roce_operation::send, immediate = of.extra == net::roce_extra::immediate;
    const bool checked = !one.begins || of.bytes == 0 || (one.ends && !immediate && payload.size() == 1);
    if (!sends && !allows(access::remote_write, of, checked))
        return false;
    const bool takes_entry = sends ? one.begins : one.ends && immediate;
    if (const roce::taken taken = takes_entry ? to_.entries.take() : roce::taken::entry; taken != roce::taken::entry) {
        lacks_entry_ = taken == roce::taken::none;
        return false;
    }
    std::uint32_t at = one.at.offset;
    for (const roce::piece each : payload) {
        const auto bytes = static_cast<std::uint32_t>(each.size());
        if ((sends ? to_.entries.deliver(at, each)
                   : to_.memory.write({of.remote_key, of.remote_address + at, bytes}, each)) != refusal::none) {
            if (takes_entry)
                to_.entries.give_back();
            return false;
        }
        at += bytes;
    }
    const roce::filled_by by = immediate ? roce::filled_by::send_immediate : roce::filled_by::send;
    if (one.ends && (sends || immediate))
        to_.entries.complete({.by = sends ? by : roce::filled_by::write_immediate,
                              .bytes = of.bytes,
                              .immediate_or_key = immediate ? of.immediate_or_key : 0,
                              .solicited = of.solicited});
    return true;
}

/// The request goes nowhere, and its RNR NAK comes from here.
bool shortcut::repeat_later()
{
    struct : roce::packet_sink {
        bool send(const roce::roce_headers&, std::span<const roce::piece>) override { return true; }
    } nowhere;
    const roce::roce_connection& settings = to_.responder.settings();
    roce::roce_packet nak;
    nak.headers.bth = roce::bth_to(settings, roce::roce_opcode::rc_acknowledge, from_.requester.cursor_psn());
    nak.headers.syndrome = net::rnr_syndrome(settings.min_rnr_timer);
    if (from_.requester.send(nowhere, 1, now_) != 1)
        return false;
    to_.responder.received.add(1);
    to_.responder.not_ready.add(1);
    from_.requester.receive(nak, now_);
    return true;
}

} // namespace weftio::nic::soft
