#include "roce/responder.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/guarded.hpp"
#include "core/refusal.hpp"
#include "roce/staged_memory.hpp"

namespace weftio::roce {

using namespace net;

namespace {

bool is_well_formed(const roce_packet& packet, const roce_shape& shape) noexcept
{
    return packet.form == roce_refusal::none && shape.known();
}

/// Why the request of a malformed packet is refused.
refusal reason_of(roce_refusal form, const roce_shape& shape) noexcept
{
    if (!shape.known())
        return refusal::unknown_opcode;
    if (form != roce_refusal::wrong_payload)
        return refusal::headers_cut;
    return shape.takes_payload ? refusal::packet_size : refusal::stray_payload;
}

} // namespace

responder::responder(rdma_service service, const roce_connection& settings, remote_memory& memory,
                     receive_entries& entries, workspace& shared)
    : service_(service), settings_(settings), memory_(memory), entries_(entries),
      expected_(settings.receive_psn & psn_mask), answers_(settings.most_reads_of_peer, shared.pool),
      results_(settings.most_reads_of_peer, shared.pool)
{}

/// RDMA step 8: checks the sequence number (IBTA 9.7.4.1.2). A packet with the expected PSN is executed, a later one
/// shows a gap, an earlier one is a repeat. A READ that begins as a repeat and reaches beyond is executed.
void responder::receive(const roce_packet& packet)
{
    received.add(1);
    const roce_opcode opcode = packet.headers.bth.opcode;
    const roce_shape& shape = shape_of(opcode);
    const std::int32_t ahead = psn_distance(expected_, packet.headers.bth.psn);
    const bool repeats = ahead < 0 && reliable();
    if (failed_ || shape.is_response() || service_of(opcode) != opcodes_of(service_) ||
        !same_partition(settings_, packet.headers) || (repeats && !is_well_formed(packet, shape)))
        return ignored.add(1);
    if (repeats && !reaches_beyond(packet.headers, shape))
        return (repeat(packet.headers, shape) ? duplicate : ignored).add(1);
    if (repeats)
        answers_.cut(packet.headers.bth.psn, settings_.path_mtu);
    if (repeats || ahead == 0 || look_ahead(packet, shape))
        conclude(execute(packet, shape), packet, shape);
}

/// Whether an earlier READ asks for more than was executed: the requester has split a long READ otherwise than before.
bool responder::reaches_beyond(const roce_headers& headers, const roce_shape& shape) const noexcept
{
    return shape.operation == roce_operation::read_request && under_way_ == roce_operation::none &&
           headers.dma_bytes <= largest_message_bytes && psn_distance(expected_, end_of_read(headers)) > 0;
}

/// The PSN after the last response to a READ.
std::uint32_t responder::end_of_read(const roce_headers& headers) const noexcept
{
    return psn_add(headers.bth.psn, packets_of(headers.dma_bytes, settings_.path_mtu));
}

/// A gap. RC: sends one NAK, and nothing more until the missing packet comes (IBTA 9.7.5.2.8). UC: the message in
/// progress is lost, and the next one may start at any PSN (IBTA 9.8.2). @return whether to execute the packet
bool responder::look_ahead(const roce_packet& packet, const roce_shape& shape)
{
    if (!reliable()) {
        drop_message();
        expected_ = packet.headers.bth.psn;
        if (shape.begins())
            return true;
        expected_ = psn_add(expected_, 1);
    } else if (!std::exchange(gap_reported_, true)) {
        acknowledge(nak_syndrome(roce_nak::sequence_error), expected_);
    }
    out_of_sequence.add(1);
    return false;
}

/// RDMA step 9: checks the form of the packet, the order of opcodes, and the length of the payload (IBTA 9.7.4.1.2,
/// 9.7.4.1.4 and 9.7.4.1.6).
responder::verdict responder::execute(const roce_packet& packet, const roce_shape& shape)
{
    if (!reliable() && shape.begins())
        drop_message();
    if (!is_well_formed(packet, shape))
        return refuse(reason_of(packet.form, shape));
    if (!in_order(shape))
        return !reliable() && under_way_ == roce_operation::none ? verdict::left_over : refuse(refusal::opcode_order);
    if (!payload_fits(shape, packet.payload.size(), settings_.path_mtu))
        return refuse(refusal::packet_size);
    switch (shape.operation) {
        case roce_operation::send: return take_send(packet, shape);
        case roce_operation::write: return take_write(packet, shape);
        case roce_operation::read_request: return take_read(packet.headers);
        default: return take_atomic(packet.headers, shape);
    }
}

bool responder::in_order(const roce_shape& shape) const noexcept
{
    return under_way_ == (shape.begins() ? roce_operation::none : shape.operation);
}

responder::verdict responder::take_entry()
{
    switch (entries_.take()) {
        case taken::entry: has_entry_ = true; return verdict::done;
        case taken::none: return verdict::not_ready;
        case taken::refused: break;
    }
    return refuse(refusal::wrong_doorbell);
}

/// RDMA step 10, SEND: the first packet takes a receive entry, each packet is appended, the last one completes the
/// entry. A key that cannot be invalidated is refused before the payload of its packet is written, and invalidated
/// after.
responder::verdict responder::take_send(const roce_packet& packet, const roce_shape& shape)
{
    if (shape.begins()) {
        if (const verdict taken = take_entry(); taken != verdict::done)
            return taken;
        offset_ = 0;
        under_way_ = roce_operation::send;
    }
    const std::uint32_t invalidated = packet.headers.invalidate_key;
    if (shape.has_invalidate) {
        if (const refusal why = memory_.may_invalidate(invalidated); why != refusal::none)
            return refuse_invalidation(invalidated, why);
    }
    if (const refusal delivered = entries_.deliver(offset_, packet.payload); delivered != refusal::none) {
        if (delivered == not_now)
            return postpone(shape.begins());
        has_entry_ = false;
        entries_.complete({.result = delivered});
        return refuse_receive(delivered);
    }
    offset_ += static_cast<std::uint32_t>(packet.payload.size());
    if (shape.has_invalidate)
        memory_.invalidate(invalidated);
    return shape.ends() ? end_send(packet.headers, shape) : verdict::done;
}

/// The packet counts when it comes again.
[[gnu::cold, gnu::noinline]] void responder::note_postponed() noexcept
{
    postponed_ = true;
    received.add(~std::uint64_t{0});
}

/// The message is as it was before the packet.
[[gnu::cold]] responder::verdict responder::postpone(bool begins)
{
    if (begins)
        drop_message();
    return verdict::postponed;
}

/// The peer is told nothing, as Linux's rdma_rxe does it: the message has arrived.
responder::verdict responder::refuse_invalidation(std::uint32_t key, refusal why)
{
    has_entry_ = false;
    entries_.complete({.result = refusal::not_invalidated, .by = filled_by::send_invalidate});
    refuse(why);
    refused_.invalidates = key;
    return verdict::not_invalidated;
}

responder::verdict responder::end_send(const roce_headers& headers, const roce_shape& shape)
{
    receive_completion completion{.bytes = offset_, .solicited = headers.bth.solicited};
    if (shape.has_invalidate) {
        completion.by = filled_by::send_invalidate;
        completion.immediate_or_key = headers.invalidate_key;
    } else if (shape.has_immediate) {
        completion.by = filled_by::send_immediate;
        completion.immediate_or_key = headers.immediate;
    }
    has_entry_ = false;
    under_way_ = roce_operation::none;
    msn_ = psn_add(msn_, 1);
    entries_.complete(completion);
    return verdict::done;
}

/// RDMA step 10, WRITE: the first packet announces range and length, which are checked completely before a byte is
/// written (IBTA 9.7.4.1.5); if it is the whole message, by the write itself. The last packet must end where the first
/// has announced. An immediate takes a receive entry.
responder::verdict responder::take_write(const roce_packet& packet, const roce_shape& shape)
{
    const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
    if (shape.begins()) {
        if (const verdict begun = begin_write(packet, shape); begun != verdict::done)
            return begun;
    }
    if (bytes > left_.bytes || shape.ends() != (bytes == left_.bytes))
        return refuse(refusal::message_length);
    if (shape.has_immediate) {
        if (const verdict taken = take_entry(); taken != verdict::done)
            return taken;
    }
    if (const verdict written = write_payload(packet, shape); written != verdict::done)
        return written;
    under_way_ = shape.ends() ? roce_operation::none : roce_operation::write;
    msn_ = psn_add(msn_, shape.ends());
    if (std::exchange(has_entry_, false)) {
        entries_.complete({.by = filled_by::write_immediate,
                           .bytes = announced_,
                           .immediate_or_key = packet.headers.immediate,
                           .solicited = packet.headers.bth.solicited});
    }
    return verdict::done;
}

/// Writes no memory, so that a repeat of the packet begins the same WRITE. A range of 0 bytes needs no key. A packet
/// that is the whole message and takes no receive entry is not checked here: memory_.write() checks it.
responder::verdict responder::begin_write(const roce_packet& packet, const roce_shape& shape)
{
    const roce_headers& headers = packet.headers;
    if (!allows(access::remote_write))
        return refuse(refusal::queue_denies_write);
    if (headers.dma_bytes > largest_message_bytes)
        return refuse(refusal::message_too_long);
    left_ = {.key = headers.remote_key, .address = headers.address, .bytes = headers.dma_bytes};
    announced_ = headers.dma_bytes;
    const bool whole = shape.ends() && !shape.has_immediate && packet.payload.size() == left_.bytes;
    if (left_.bytes == 0 || whole)
        return verdict::done;
    const refusal why = memory_.check(left_, access::remote_write);
    return why == refusal::none ? verdict::done : refuse(why, left_);
}

responder::verdict responder::write_payload(const roce_packet& packet, const roce_shape& shape)
{
    const auto bytes = static_cast<std::uint32_t>(packet.payload.size());
    if (bytes == 0)
        return verdict::done;
    const remote_range part{.key = left_.key, .address = left_.address, .bytes = bytes};
    if (const refusal why = memory_.write(part, packet.payload); why != refusal::none) {
        if (why == not_now) {
            if (shape.has_immediate && std::exchange(has_entry_, false))
                entries_.give_back();
            return verdict::postponed;
        }
        refuse(why, part);
        if (!shape.has_immediate || !std::exchange(has_entry_, false))
            return verdict::refused;
        entries_.complete({.result = refusal::lost_memory, .by = filled_by::write_immediate});
        return verdict::receive_failed;
    }
    left_.address += bytes;
    left_.bytes -= bytes;
    return verdict::done;
}

/// RDMA step 10, READ: queues it; send() answers it. The MSN counts the message now (IBTA 9.7.7.1).
responder::verdict responder::take_read(const roce_headers& headers)
{
    if (!allows(access::remote_read))
        return refuse(refusal::queue_denies_read);
    if (headers.dma_bytes > largest_message_bytes)
        return refuse(refusal::read_too_long);
    if (answers_.fresh() >= settings_.most_reads_of_peer)
        return refuse(refusal::too_many_reads);
    const remote_range range{.key = headers.remote_key, .address = headers.address, .bytes = headers.dma_bytes};
    if (range.bytes != 0) {
        if (const refusal why = memory_.check(range, access::remote_read); why != refusal::none)
            return refuse(why, range);
    }
    const std::uint32_t msn = psn_add(msn_, 1);
    if (!answers_.add({.what = answer::kind::read, .fresh = true, .psn = headers.bth.psn, .msn = msn, .range = range}))
        return verdict::no_room;
    msn_ = msn;
    return verdict::done;
}

/// RDMA step 10, atomic: executes it once and saves the result. The word has the byte order of this host.
responder::verdict responder::take_atomic(const roce_headers& headers, const roce_shape& shape)
{
    if (!allows(access::remote_atomic))
        return refuse(refusal::queue_denies_atomic);
    if (headers.address % sizeof(std::uint64_t) != 0)
        return refuse(refusal::misaligned_atomic);
    if (answers_.fresh() >= settings_.most_reads_of_peer)
        return refuse(refusal::too_many_reads);
    std::uint64_t* word = nullptr;
    if (const refusal why = memory_.word(headers.remote_key, headers.address, word); why != refusal::none)
        return refuse(why, {headers.remote_key, headers.address, sizeof *word});
    answer result{.what = answer::kind::atomic, .fresh = true, .psn = expected_, .msn = psn_add(msn_, 1)};
    if (!answers_.make_room() || !results_.make_room())
        return verdict::no_room;
    if (!change(word, shape.operation, headers.compare, headers.swap_or_add, result.original))
        return refuse(refusal::memory_gone, {headers.remote_key, headers.address, sizeof *word});
    results_.save(expected_, result.original);
    msn_ = result.msn;
    answers_.add(result);
    return verdict::done;
}

bool change(std::uint64_t* word, roce_operation operation, std::uint64_t compare, std::uint64_t swap_or_add,
            std::uint64_t& original) noexcept
{
    return core::guarded([&](core::touched& bytes) {
        bytes.only(word, sizeof *word);
        const std::atomic_ref<std::uint64_t> target(*word);
        if (operation == roce_operation::fetch_add) {
            original = target.fetch_add(swap_or_add);
        } else {
            original = compare;
            target.compare_exchange_strong(original, swap_or_add);
        }
    });
}

/// RDMA step 11: counts the request and decides what to answer.
void responder::conclude(verdict result, const roce_packet& packet, const roce_shape& shape)
{
    switch (result) {
        case verdict::done: executed.add(1); return advance(packet, shape);
        case verdict::postponed: return note_postponed();
        case verdict::no_room: return ignored.add(1); // as if the packet were lost
        case verdict::left_over: ignored.add(1); break;
        case verdict::not_ready: not_ready.add(1); break;
        case verdict::refused:
        case verdict::receive_failed:
        case verdict::not_invalidated:
            refused_.operation = shape.operation;
            refused.add(1);
            break;
    }
    if (!reliable()) {
        drop_message();
        expected_ = psn_add(expected_, 1);
        if (result == verdict::receive_failed || result == verdict::not_invalidated)
            stop();
        return;
    }
    if (result != verdict::not_ready)
        return result == verdict::not_invalidated ? end_silently(packet.headers) : give_up(nak_, expected_);
    gap_reported_ = true; // the packets after this one are out of sequence, which the RNR NAK covers
    acknowledge(rnr_syndrome(settings_.min_rnr_timer), expected_);
}

/// A READ takes one sequence number per response packet. READs and atomics need no ACK (IBTA 9.7.5.1.1).
void responder::advance(const roce_packet& packet, const roce_shape& shape)
{
    const bool reads = shape.operation == roce_operation::read_request;
    expected_ = reads ? end_of_read(packet.headers) : psn_add(expected_, 1);
    gap_reported_ = false;
    const bool asks = shape.operation == roce_operation::send || shape.operation == roce_operation::write;
    if (asks && packet.headers.bth.ack_request && reliable())
        acknowledge(entries_.credits(), psn_add(expected_, -1));
}

/// A READ in parts is one request.
void responder::skip(const message& of, std::uint32_t packets, std::uint32_t at) noexcept
{
    const bool begins = expected_ == of.first_psn, ends = at == of.bytes, sends = of.operation == roce_operation::send;
    const std::uint32_t requests = of.operation == roce_operation::read_request ? begins : packets;
    received.add(requests);
    executed.add(requests);
    expected_ = psn_add(expected_, packets);
    msn_ = psn_add(msn_, ends);
    gap_reported_ = false;
    if (of.wants_result() || (begins && ends))
        return;
    under_way_ = ends ? roce_operation::none : of.operation;
    has_entry_ = sends && !ends;
    offset_ = at;
    announced_ = of.bytes;
    left_ = {.key = of.remote_key, .address = of.remote_address + at, .bytes = of.bytes - at};
}

/// A repeat (IBTA 9.7.5.1.3): a SEND or WRITE is acknowledged again but not executed, a READ is read again, an atomic
/// is answered from the saved result. @return whether it is answered
bool responder::repeat(const roce_headers& headers, const roce_shape& shape)
{
    switch (shape.operation) {
        case roce_operation::send:
        case roce_operation::write: acknowledge(entries_.credits(), psn_add(expected_, -1)); return true;
        case roce_operation::read_request: return repeat_read(headers);
        default: return repeat_atomic(headers);
    }
}

/// Drops a READ that the peer cannot have sent, and one of memory that the peer may no longer read: a late old packet
/// must not end a connection.
bool responder::repeat_read(const roce_headers& headers)
{
    const remote_range range{.key = headers.remote_key, .address = headers.address, .bytes = headers.dma_bytes};
    if (!allows(access::remote_read) || range.bytes > largest_message_bytes ||
        psn_distance(end_of_read(headers), expected_) < 0)
        return false;
    if (range.bytes != 0 && memory_.check(range, access::remote_read) != refusal::none)
        return false;
    answers_.cut(headers.bth.psn, settings_.path_mtu);
    return answers_.add({.what = answer::kind::read, .psn = headers.bth.psn, .msn = msn_, .range = range});
}

bool responder::repeat_atomic(const roce_headers& headers)
{
    const std::uint64_t* const original = results_.find(headers.bth.psn);
    return original != nullptr &&
           answers_.add({.what = answer::kind::atomic, .psn = headers.bth.psn, .msn = msn_, .original = *original});
}

/// Ends the connection: sends this NAK, and no answer after it.
void responder::give_up(std::uint8_t nak, std::uint32_t psn)
{
    stop();
    acknowledge(nak, psn);
}

/// Ends the connection, and acknowledges the request if it asks for that.
void responder::end_silently(const roce_headers& headers)
{
    stop();
    if (headers.bth.ack_request)
        acknowledge(entries_.credits(), expected_);
}

[[gnu::cold]] void responder::fail(refusal why, roce_operation operation, std::uint32_t psn)
{
    refuse(why);
    refused_.operation = operation;
    refused.add(1);
    answers_.clear();
    if (reliable())
        give_up(nak_, psn);
    else
        stop();
}

void responder::stop()
{
    failed_ = true;
    results_.clear();
    under_way_ = roce_operation::none;
    if (std::exchange(has_entry_, false))
        entries_.complete({.result = refusal::flushed});
}

/// Drops what has arrived of the message in progress. The next message takes its receive entry (IBTA 9.8.3.2).
void responder::drop_message()
{
    under_way_ = roce_operation::none;
    if (std::exchange(has_entry_, false))
        entries_.give_back();
}

responder::verdict responder::refuse(refusal why) noexcept
{
    refused_ = {.reason = why};
    nak_ = core::nak_of(why);
    return verdict::refused;
}

/// Refuses because of memory that the peer has named.
responder::verdict responder::refuse(refusal why, const remote_range& range) noexcept
{
    refuse(why);
    refused_.range = range;
    return verdict::refused;
}

/// The current receive entry has failed.
responder::verdict responder::refuse_receive(refusal why) noexcept
{
    refuse(why);
    nak_ = core::nak_of_receive(why);
    return verdict::receive_failed;
}

void responder::acknowledge(std::uint8_t syndrome, std::uint32_t psn)
{
    answers_.acknowledge({.what = answer::kind::acknowledge, .syndrome = syndrome, .psn = psn, .msn = msn_});
}

} // namespace weftio::roce
