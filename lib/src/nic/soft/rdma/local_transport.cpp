#include "nic/soft/rdma/local_transport.hpp"

#include <algorithm>

namespace weftio::nic::soft {

using net::roce_extra;
using net::roce_operation;

/// First completes entries that the peer had acknowledged before it asked: programs rely on that order.
bool local_responder::expects(const local_part& part)
{
    lacks_entry_ = false;
    if (sends_.completes_each() && sends_.has_ended())
        sends_.publish();
    return !failed() && idle() && expected_ == part.psn &&
           under_way_ == (part.begins || part.of.wants_result() ? roce_operation::none : part.of.operation);
}

/// Checks the whole range of a WRITE before a byte is written; one memory_.write() of all of it checks it, too.
bool local_responder::may_take(const local_part& part, std::size_t pieces)
{
    const roce::message& of = part.of;
    if (of.operation == roce_operation::send)
        return of.extra != roce_extra::invalidate;
    const bool checked = !part.begins || of.bytes == 0 || (part.ends && of.extra == roce_extra::none && pieces == 1);
    return allows(access::remote_write) && (checked || memory_.check({of.remote_key, of.remote_address, of.bytes},
                                                                     access::remote_write) == refusal::none);
}

bool local_responder::take_entry()
{
    const roce::taken taken = entries_.take();
    lacks_entry_ = taken == roce::taken::none;
    return taken == roce::taken::entry;
}

bool local_responder::take(const local_part& part, std::span<const roce::piece> payload)
{
    const roce::message& of = part.of;
    const bool sends = of.operation == roce_operation::send, immediate = of.extra == roce_extra::immediate;
    const bool takes_entry = sends ? part.begins : part.ends && immediate;
    if (!may_take(part, payload.size()) || (takes_entry && !take_entry()))
        return false;
    std::uint32_t at = part.at.offset;
    for (const roce::piece each : payload) {
        const auto bytes = static_cast<std::uint32_t>(each.size());
        const refusal why =
            sends ? entries_.deliver(at, each) : memory_.write({of.remote_key, of.remote_address + at, bytes}, each);
        if (why != refusal::none) {
            if (takes_entry)
                entries_.give_back();
            return false;
        }
        at += bytes;
    }
    offset_ = at;
    announced_ = of.bytes;
    left_ = {.key = of.remote_key, .address = of.remote_address + at, .bytes = of.bytes - at};
    under_way_ = part.ends ? roce_operation::none : of.operation;
    has_entry_ = sends && !part.ends;
    using roce::filled_by;
    if (part.ends && (sends || immediate))
        entries_.complete({.by = !sends      ? filled_by::write_immediate
                                 : immediate ? filled_by::send_immediate
                                             : filled_by::send,
                           .bytes = of.bytes,
                           .immediate_or_key = immediate ? of.immediate_or_key : 0,
                           .solicited = of.solicited});
    return true;
}

bool local_responder::find(const local_part& part, roce::piece& bytes)
{
    const roce::message& of = part.of;
    const bool checked = !part.begins || part.ends;
    return allows(access::remote_read) && settings_.most_reads_of_peer != 0 &&
           (checked ||
            memory_.check({of.remote_key, of.remote_address, of.bytes}, access::remote_read) == refusal::none) &&
           (of.bytes == 0 ||
            memory_.read({of.remote_key, of.remote_address + part.at.offset, part.at.bytes}, bytes) == refusal::none);
}

bool local_responder::change(const roce::message& of, std::uint64_t& original)
{
    std::uint64_t* word = nullptr;
    return allows(access::remote_atomic) && settings_.most_reads_of_peer != 0 &&
           memory_.word(of.remote_key, of.remote_address, word) == refusal::none &&
           responder::change(word, of.operation, of.compare, of.swap_or_add, original);
}

/// A READ in parts is one request.
void local_responder::count(const local_part& part)
{
    const std::uint32_t requests = part.of.operation == roce_operation::read_request ? part.begins : part.packets;
    received.add(requests);
    executed.add(requests);
    expected_ = net::psn_add(expected_, part.packets);
    msn_ = net::psn_add(msn_, part.ends);
    gap_reported_ = false;
}

std::uint8_t local_responder::count_not_ready()
{
    received.add(1);
    not_ready.add(1);
    gap_reported_ = true;
    return settings_.min_rnr_timer;
}

unsigned local_requester::send_to(local_responder* partner, roce::packet_sink& sink, roce::allowance most,
                                  std::uint64_t now)
{
    const unsigned before = most.packets;
    if (partner != nullptr && !copy_all(*partner, most, now))
        return before - most.packets;
    return before - most.packets + send(sink, most, now);
}

/// While packets to the partner are in flight, the next requests wait for the answers, and then are copies. What the
/// partner has executed without being asked for an ACK is answered here. @return whether the next request needs packets
bool local_requester::copy_all(local_responder& partner, roce::allowance& most, std::uint64_t now)
{
    check_clock(now);
    while (reach_request(most, now)) {
        if (in_flight() != 0) {
            if (partner.expected_psn() != cursor_psn())
                return true;
            if (has_asked() || !acknowledge_to(cursor_psn(), now))
                return false;
        } else if (!copy(partner, most, now)) {
            if (!partner.lacks_entry() || !sends_alone())
                return true;
            pass_not_ready(partner.count_not_ready(), now);
        }
    }
    return false;
}

/// Has the partner execute the next packets of the message at the cursor.
bool local_requester::copy(local_responder& partner, roce::allowance& most, std::uint64_t now)
{
    const roce::message& next = at_cursor();
    const std::uint32_t from = next_packet(), left = next.packets - from, mtu = settings_.path_mtu;
    std::uint32_t count = std::min({most_packets_at_once, left, most.packets});
    if (count != 1)
        count = std::clamp(most.bytes / mtu, 1u, count);
    const local_part part{next,         net::segment_of(next.bytes, mtu, from, count), cursor_psn(), count, from == 0,
                          count == left};
    if (!partner.expects(part) || !execute(partner, part))
        return false;
    partner.count(part);
    sender_.count_copy(part.at.bytes);
    most.spend(part.at.bytes, count);
    if (refused_ == refusal::none)
        pass(count, now);
    else
        fail(refused_);
    return true;
}

/// Eight bytes are one store, so they must be one piece. Once an atomic has changed the word, no packet may ask for it
/// again: if its result cannot be written, this queue pair fails.
bool local_requester::execute(local_responder& partner, const local_part& part)
{
    const roce::message& of = part.of;
    if (of.operation == roce_operation::read_request) {
        roce::piece bytes;
        return partner.find(part, bytes) &&
               (bytes.empty() || entries_.scatter(of, part.at.offset, bytes) == refusal::none);
    }
    if (of.wants_result()) {
        std::uint64_t original = 0;
        if (!partner.change(of, original))
            return false;
        refused_ = entries_.scatter(of, 0, {reinterpret_cast<const std::uint8_t*>(&original), sizeof original});
        return true;
    }
    pieces_.count = 0;
    if (part.at.bytes != 0 && entries_.gather(of, part.at.offset, part.at.bytes, pieces_) != refusal::none)
        return false;
    return (pieces_.count < 2 || part.at.bytes != sizeof(std::uint64_t)) && partner.take(part, pieces_.all());
}

} // namespace weftio::nic::soft
