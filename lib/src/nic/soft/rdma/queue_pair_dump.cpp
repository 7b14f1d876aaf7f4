// The state of a queue pair, for diagnosis.
#include <algorithm>

#include "core/clock.hpp"
#include "nic/soft/rdma/queue_pair.hpp"

namespace weftio::nic::soft {

rdma_dump queue_pair::dump()
{
    rdma_dump all;
    dump_rings(all);
    all.counters = counters();
    if (connection_) {
        dump_connection(all);
        all.expected_psn = connection_->responder.expected_psn();
        all.msn = connection_->responder.msn();
        all.answers_waiting = connection_->responder.answers_waiting();
        if (connection_->requester)
            dump_requests(all);
    }
    return all;
}

void queue_pair::dump_connection(rdma_dump& into) const
{
    const net::roce_path& path = connection_->path;
    into.connected = true;
    into.same_port = peer_at_own_port_;
    into.address = net::text_of(path.source);
    into.peer_address = net::text_of(path.destination);
    into.peer_mac = path.destination_mac;
    into.peer_queue = connection_->responder.settings().peer_queue;
    into.path_mtu = connection_->responder.settings().path_mtu;
    into.dscp = static_cast<std::uint8_t>(path.traffic_class >> 2);
    into.hop_limit = path.hop_limit;
}

void queue_pair::dump_requests(rdma_dump& into)
{
    roce::requester& requester = *connection_->requester;
    const roce::requester_standing now = requester.standing();
    into.acknowledged_psn = now.acknowledged;
    into.next_psn = now.next;
    into.sent_psn = now.sent;
    into.packets_in_flight = now.packets_in_flight;
    into.window = now.window;
    into.retries_left = now.retries_left;
    into.rnr_retries_left = now.rnr_retries_left;
    into.entries_in_flight = now.messages_in_flight;
    if (now.waits_for_receiver)
        into.awaits = rdma_awaits::receiver;
    else if (now.packets_in_flight != 0)
        into.awaits = rdma_awaits::answer;
    if (into.awaits != rdma_awaits::nothing && now.deadline_ns != 0)
        into.ends_in_ns = now.deadline_ns - std::min(now.deadline_ns, core::utc_stamp_ns());
    const auto shown = std::min<std::uint32_t>(now.messages_in_flight, rdma_dump::most_entries);
    for (std::uint32_t number = 0; number < shown; ++number) {
        const roce::message& each = requester.message_at(number);
        into.entries.push_back({.position = each.entry,
                                .opcode = each.opcode,
                                .bytes = each.bytes,
                                .first_psn = each.first_psn,
                                .packets = each.packets});
    }
}

} // namespace weftio::nic::soft
