// RDMA step 12: sends answers in the order of their sequence numbers, as far as the sink has room.
#include "roce/responder.hpp"

namespace weftio::roce {

using namespace net;

unsigned responder::send(packet_sink& sink, allowance most)
{
    const unsigned before = most.packets;
    while (!most.empty() && !answers_.empty()) {
        answer& next = answers_.front();
        const bool reads = next.what == answer::kind::read;
        const bool gone = reads                               ? send_part_of_read(sink, most, next)
                          : next.what == answer::kind::atomic ? send_atomic(sink, next)
                                                              : send_acknowledge(sink, next);
        if (!gone)
            break;
        if (!reads)
            most.spend(0);
    }
    return before - most.packets;
}

bool responder::send_acknowledge(packet_sink& sink, const answer& next)
{
    const roce_headers headers{
        .bth = bth_to(settings_, roce_opcode::rc_acknowledge, next.psn), .msn = next.msn, .syndrome = next.syndrome};
    if (!sink.send(headers, {}))
        return false;
    answers_.pop();
    return true;
}

bool responder::send_atomic(packet_sink& sink, const answer& next)
{
    const roce_headers headers{.bth = bth_to(settings_, roce_opcode::rc_atomic_acknowledge, next.psn),
                               .original = next.original,
                               .msn = next.msn,
                               .syndrome = ack_syndrome(entries_.credits())};
    if (!sink.send(headers, {}))
        return false;
    answers_.pop();
    return true;
}

/// Sends one packet of a READ. Checks the memory again for each: it may have gone since the request.
bool responder::send_part_of_read(packet_sink& sink, allowance& most, answer& next)
{
    const std::uint32_t mtu = settings_.path_mtu, packets = packets_of(next.range.bytes, mtu);
    const roce_segment part = segment_of(next.range.bytes, mtu, next.sent);
    const std::uint32_t psn = psn_add(next.psn, next.sent);
    piece bytes;
    const remote_range range{next.range.key, next.range.address + part.offset, part.bytes};
    if (part.bytes != 0) {
        if (memory_.read(range, bytes) != refusal::none)
            return lose_read(next, refusal::read_lost, psn);
    }
    const roce_opcode opcode = *opcode_of(roce_service::rc, roce_operation::read_response, part.position);
    const roce_headers headers{
        .bth = bth_to(settings_, opcode, psn), .msn = next.msn, .syndrome = ack_syndrome(entries_.credits())};
    if (!sink.send(headers, {&bytes, 1}))
        return sink.payload_gone() && lose_read(next, refusal::memory_gone, psn);
    most.spend(part.bytes);
    if (++next.sent == packets)
        answers_.pop();
    return true;
}

responder::unsent_read responder::sending() noexcept
{
    const answer& next = answers_.front();
    return {next.psn, next.range.bytes - next.sent * settings_.path_mtu};
}

/// The memory of a READ has gone before all of it was read. If the READ is a repeat, it is dropped.
bool responder::lose_read(const answer& next, refusal why, std::uint32_t psn)
{
    if (!next.fresh) {
        answers_.pop();
        return true;
    }
    refuse(why, next.range);
    refused_.operation = roce_operation::read_request;
    answers_.clear();
    give_up(nak_, psn);
    return true;
}

} // namespace weftio::roce
