#include "nic/soft/rdma/queue_pair.hpp"

#include <algorithm>

#include "core/clock.hpp"

namespace weftio::nic::soft {

namespace {

net::roce_path path_of(const rdma_connection& to, std::uint32_t queue) noexcept
{
    constexpr std::uint32_t first_dynamic_port = 0xc000;
    net::roce_path path;
    path.destination_mac = to.theirs.mac;
    path.source_mac = to.ours.mac;
    path.l3 = net::is_ipv4(to.ours.address) ? net::l3_kind::ipv4 : net::l3_kind::ipv6;
    path.source = to.ours.address;
    path.destination = to.theirs.address;
    // One flow for each pair of queues, so that a switch spreads them over its links.
    path.source_port = static_cast<std::uint16_t>(first_dynamic_port | ((queue ^ to.theirs.queue) & 0x3fff));
    path.traffic_class = to.traffic_class;
    path.hop_limit = to.hop_limit;
    if (to.vlan_tci != no_vlan)
        path.tags[path.tag_count++].tci = to.vlan_tci;
    return path;
}

roce::connection peer_of(const rdma_connection& to) noexcept
{
    return {.service = to.reliable ? net::roce_service::rc : net::roce_service::uc,
            .peer_queue = to.theirs.queue,
            .path_mtu = to.path_mtu,
            .partition_key = to.partition_key};
}

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

queue_pair::connection::connection(const rdma_connection& to, queue_pair& owner, std::uint32_t queue)
    : path(path_of(to, queue)), requester({.peer = peer_of(to),
                                           .first_psn = to.ours.first_psn,
                                           .most_reads = to.most_reads,
                                           .timeout = to.timeout,
                                           .retry_count = to.retry_count,
                                           .rnr_retry = to.rnr_retry},
                                          owner),
      responder({.peer = peer_of(to),
                 .first_psn = to.theirs.first_psn,
                 .rights = to.rights,
                 .most_reads = to.most_reads_of_peer,
                 .rnr_timer = to.min_rnr_timer},
                owner.memory_, owner.receives_)
{}

queue_pair::queue_pair(const rdma_rings& rings, const keys::nic_keys& keys, rdma_wire& wire)
    : rdma_work(rings.send, keys), memory_(keys, rings.send.domain),
      receives_(rings.receive, rings.send.entries.queue, keys, rings.send.domain), wire_(wire)
{}

void queue_pair::connect(const rdma_connection& to)
{
    set_reliable(to.reliable);
    connection_.emplace(to, *this, ring_.entries.queue);
}

bool queue_pair::is_from_peer(const net::roce_packet& packet) const noexcept
{
    if (!connection_)
        return false;
    const net::roce_path& ours = connection_->path;
    return packet.path.l3 == ours.l3 && packet.path.source == ours.destination &&
           packet.path.destination == ours.source;
}

void queue_pair::receive(const net::roce_packet& packet)
{
    if (net::shape_of(packet.headers.bth.opcode).is_response())
        connection_->requester.receive(packet, core::utc_stamp_ns());
    else
        connection_->responder.receive(packet);
}

/// Send steps 3 to 6. Answers go first, because the peer waits for them.
unsigned queue_pair::turn(std::uint32_t most)
{
    look();
    most = std::min(most, packets_of_a_turn);
    unsigned moved = 0;
    if (connection_) {
        path_sink sink(wire_, connection_->path, local_);
        end_when_broken();
        moved += connection_->responder.send(sink, most);
        moved += connection_->requester.send(sink, most, core::utc_stamp_ns());
        end_when_broken();
    }
    if (completed_ != handed_ || untold())
        moved += work_queue::complete();
    return moved;
}

/// What has failed on one side, or in the doorbell record, ends the other too. What is posted afterwards is flushed.
void queue_pair::end_when_broken()
{
    roce::requester& requester = connection_->requester;
    roce::responder& responder = connection_->responder;
    if (!failed() && !requester.failed() && !responder.failed() && !receives_.record_refused())
        return;
    if (!failed())
        tell_of_responder();
    if (!requester.failed())
        requester.stop();
    if (!responder.failed())
        responder.stop();
    end_work();
    receives_.flush();
}

/// The host hears of it, and the kernel by its send completion.
void queue_pair::tell_of_responder() noexcept
{
    roce::refused_request refused = connection_->responder.last_refused();
    if (receives_.record_refused())
        refused.reason = refusal::wrong_doorbell; // also of UC, whose responder never fails
    else if (!connection_->responder.failed() || refused.reason == refusal::none)
        return;
    failures_.put({.request = refused,
                   .entry = receives_.failed_entry(),
                   .reason = receives_.failure(),
                   .time_ns = core::utc_now_ns()});
    untold_ = refusal::refused_peer;
}

bool queue_pair::idle() const noexcept
{
    return work_queue::idle() && (!connection_ || connection_->responder.idle());
}

void queue_pair::stop()
{
    look();
    failed_.store(true, std::memory_order_relaxed);
    if (connection_)
        end_when_broken();
    end_work();
    receives_.flush();
    work_queue::complete();
}

void queue_pair::restart(const rdma_rings& rings)
{
    before_ = counters();
    connection_.reset();
    begin_again_at_zero(rings.send);
    receives_.restart(rings.receive);
}

rdma_counters queue_pair::counters() const noexcept
{
    rdma_counters all = before_;
    all.enqueued = enqueued.value();
    all.done = done.value();
    all.done_bytes = done_bytes.value();
    all.skipped = skipped.value();
    all.failed = failed_entries.value();
    all.flushed = flushed.value();
    all.lost_events = events_.lost.value() + failures_.lost.value();
    all.received = receives_.received.value();
    all.filled = receives_.filled.value();
    all.receive_failed = receives_.failed.value();
    all.receive_flushed = receives_.flushed.value();
    if (connection_) {
        add_requester(all, connection_->requester);
        add_responder(all, connection_->responder);
    }
    return all;
}

} // namespace weftio::nic::soft
