#include "nic/soft/rdma/rdma_unit.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/clock.hpp"
#include "net/checksum.hpp"
#include "net/packet_headers.hpp"
#include "weftio/error.hpp"

namespace weftio::nic::soft {

namespace {

constexpr std::size_t most_frame_bytes = net::most_roce_headers_bytes + net::largest_path_mtu + 3 + net::icrc_bytes;

/// The bytes of a packet in one piece: in place, or in `copy`. Empty if the packet does not fit `copy`.
std::span<const std::uint8_t> in_one_piece(const rte_mbuf& mbuf, std::span<std::uint8_t> copy)
{
    if (mbuf.nb_segs == 1)
        return {rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len};
    if (mbuf.pkt_len > copy.size())
        return {};
    const void* const bytes = rte_pktmbuf_read(&mbuf, 0, mbuf.pkt_len, copy.data());
    return {static_cast<const std::uint8_t*>(bytes), mbuf.pkt_len};
}

bool is_roce(const net::packet_headers& headers) noexcept
{
    return headers.l4 == net::l4_kind::udp && headers.destination_port == net::roce_port;
}

/// The first segment of the mbuf, from which headers were parsed.
std::span<const std::uint8_t> begin_of(const rte_mbuf& mbuf)
{
    return {rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len};
}

} // namespace

rdma_unit::rdma_unit(const dpdk::port_queue& port_queue, const keys::nic_keys& keys, receiver& receiver,
                     roce_directory& directory, bool by_packet)
    : keys_(keys), receiver_(receiver), directory_(directory), by_packet_(by_packet || port_queue.dump),
      folder_(folder_of_traces()), commons_(port_queue, directory.first())
{
    directory.add_unit(*this);
    if (!folder_.empty())
        trace_packets();
}

rdma_unit::~rdma_unit()
{
    if (inbox_)
        inbox_->for_each([](const handed& packet) { rte_pktmbuf_free(packet.mbuf); });
}

/// RDMA step 2. Idle queue pairs cost the same as idle send queues: a few doorbell records are polled.
unsigned rdma_unit::turn(const turn_budget& budget)
{
    unsigned moved = inbox_ ? take_in() : 0;
    if (commons_.queues.empty()) {
        commons_.sender.flush(); // answers to ARP and ND
        return moved;
    }
    moved += take_own();
    commons_.queues.poll_for_work(budget.busy || moved != 0);
    commons_.queues.wake_those_due();
    moved += commons_.queues.turn(std::min(budget.entries, share_)).moved;
    commons_.sender.flush();
    if (!folder_.empty())
        write_traces_of_failures();
    share_packets();
    moved += commons_.shares.has_deferred(); // which is work
    commons_.shares.next_turn(budget.moved_before > ours_before_,
                              [&](std::uint32_t number) { commons_.queues.wake(number); });
    ours_before_ = moved + std::exchange(taken_, 0);
    return moved;
}

/// Queue pairs always have turns in the same order. When there was no room for all packets, each may send less, so that
/// the first ones leave room for the others.
void rdma_unit::share_packets() noexcept
{
    share_ = commons_.sender.ran_out() ? std::max(share_ / 2, 1u) : std::min(share_ * 2, queue_pair::packets_of_a_turn);
}

void rdma_unit::trace_packets()
{
    if (trace_)
        return;
    trace_ = std::make_unique<packet_trace>();
    commons_.sender.trace_to(*trace_);
    for_each([this](std::uint32_t, queue_pair& queue) {
        if (queue.connected())
            find_peer_of(queue);
    });
}

void rdma_unit::note(const rte_mbuf& mbuf) noexcept
{
    if (trace_)
        trace_->note(begin_of(mbuf), mbuf.pkt_len, core::utc_stamp_ns(), net::frame_direction::received);
}

/// For queue pairs that have failed in this turn. Their NAKs have been sent, so the trace contains them.
void rdma_unit::write_traces_of_failures()
{
    for_each([this](std::uint32_t number, queue_pair& queue) {
        if (queue.take_failure())
            write_trace_of_failure(*trace_, folder_, number, queue.dump().last_error);
    });
}

void rdma_unit::count(core::counter& result) noexcept
{
    claimed.add(1);
    result.add(1);
}

/// Processes all packets that other engines have handed over when it is called.
unsigned rdma_unit::take_in()
{
    std::array<handed, 32> packets;
    const std::size_t all = inbox_->waiting();
    for (std::size_t left = all, some = 0; left != 0; left -= some) {
        some = inbox_->take(packets.data(), std::min(left, packets.size()));
        if (some == 0)
            return static_cast<unsigned>(all - left);
        for (const handed& each : std::span(packets).first(some)) {
            const fate what = process(*each.mbuf, each.headers, each.own);
            if (what == fate::no_room) // its number has gone to a queue pair of another engine
                count(inbox_full);
            if (what != fate::kept)
                rte_pktmbuf_free(each.mbuf);
        }
    }
    return static_cast<unsigned>(all);
}

/// Takes packets between queue pairs of this port. They carry no ICRC. Those from the first that finds no room in the
/// inbox of another engine on wait for the next turn.
unsigned rdma_unit::take_own()
{
    const std::span<rte_mbuf* const> all = commons_.sender.take_own();
    for (std::size_t at = 0; at != all.size(); ++at) {
        const fate what = process(*all[at], net::parse(begin_of(*all[at]), std::nullopt), true);
        if (what == fate::no_room) {
            commons_.sender.put_back_own(all.subspan(at));
            return static_cast<unsigned>(at);
        }
        if (what == fate::free_now)
            rte_pktmbuf_free(all[at]);
    }
    return static_cast<unsigned>(all.size());
}

bool rdma_unit::claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept
{
    return is_roce(headers) ? directory_.is_to_us(headers) : directory_.addresses().claims(begin_of(mbuf), headers);
}

bool rdma_unit::take(rte_mbuf& mbuf, const net::packet_headers& headers)
{
    ++taken_;
    const fate what = process(mbuf, headers, false);
    if (what == fate::no_room)
        count(inbox_full);
    return what == fate::kept;
}

/// RDMA step 7. Verifies the checksums before any field but the queue number is used, unless the packet comes from this
/// port. Returns the counter for the packet.
[[gnu::always_inline]] inline core::counter& rdma_unit::deliver(const roce_arrival& arrival, net::roce_refusal form,
                                                                roce_receiver* to)
{
    const auto& bth = arrival.packet.headers.bth;
    const bool congests = net::service_of(bth.opcode) == net::roce_service::congestion;
    if (form != net::roce_refusal::none && (!net::is_invalid_request(form) || congests))
        return malformed;
    if (core::counter* const damaged = arrival.own ? nullptr : damage(arrival))
        return *damaged;
    if (congests)
        return congestion;
    if (!to)
        return for_nobody;
    const roce_verdict verdict = to->receive(arrival);
    if (verdict == roce_verdict::delivered)
        commons_.queues.wake(bth.destination_qp);
    return verdict == roce_verdict::delivered       ? delivered
           : verdict == roce_verdict::not_from_peer ? not_from_peer
                                                    : other_mac;
}

/// Processes a claimed packet here, or hands it to the engine that does.
rdma_unit::fate rdma_unit::process(rte_mbuf& mbuf, const net::packet_headers& headers, bool own)
{
    std::array<std::uint8_t, most_frame_bytes> copy;
    if (!is_roce(headers)) {
        if (&directory_.neighbors_unit() != this)
            return hand_over(directory_.neighbors_unit(), mbuf, headers, own);
        note(mbuf);
        count(meet(begin_of(mbuf), headers));
        return fate::free_now;
    }
    net::roce_packet packet;
    const std::span<const std::uint8_t> frame = in_one_piece(mbuf, copy);
    const net::roce_refusal form = net::parse_roce(frame, headers, packet);
    const roce_directory::entry to = directory_.find(packet.headers.bth.destination_qp);
    if (to.home != this && to.home != nullptr)
        return hand_over(*to.home, mbuf, headers, own);
    note(mbuf);
    count(deliver({packet, headers, frame, own}, form, to.receiver));
    return fate::free_now;
}

/// The mbuf may be in a slot of a queue of this engine; then the other engine gets a copy.
rdma_unit::fate rdma_unit::hand_over(rdma_unit& to, rte_mbuf& mbuf, const net::packet_headers& headers,
                                     bool own) noexcept
{
    rte_mbuf* const given = to.inbox_->has_room() ? receiver_.to_hand_over(mbuf) : nullptr;
    if (given && to.inbox_->put({given, headers, own}))
        return given == &mbuf ? fate::kept : fate::free_now;
    if (given != &mbuf)
        rte_pktmbuf_free(given);
    return fate::no_room;
}

/// Learns a neighbor's MAC, or answers with ours. If there is no room to send, the answer is lost, as it may be on the
/// way.
core::counter& rdma_unit::meet(std::span<const std::uint8_t> frame, const net::packet_headers& headers)
{
    std::array<std::uint8_t, net::most_neighbor_bytes> answer;
    if (const std::size_t bytes = directory_.addresses().take(frame, headers, answer); bytes != 0)
        commons_.sender.put(std::span(answer).first(bytes));
    return neighbor;
}

void rdma_unit::ask(const net::roce_gid& from, const net::roce_gid& target)
{
    std::array<std::uint8_t, net::most_neighbor_bytes> question;
    const std::size_t bytes = directory_.addresses().ask(from, target, question);
    commons_.sender.put(std::span<const std::uint8_t>(question).first(bytes));
    commons_.sender.flush();
}

/// Verifies the checksums of IP and UDP, and the ICRC. Returns the counter of the first that is wrong, or nullptr.
core::counter* rdma_unit::damage(const roce_arrival& arrival) noexcept
{
    switch (net::wrong_checksum_of(arrival.frame, arrival.headers)) {
        case net::wrong_checksum::ip: return &wrong_ip_checksum;
        case net::wrong_checksum::udp: return &wrong_udp_checksum;
        case net::wrong_checksum::none: break;
    }
    return arrival.packet.icrc_good() ? nullptr : &rx_icrc_encapsulated;
}

std::uint32_t rdma_unit::add(pair_rings rings, rdma_service service)
{
    const std::uint32_t number = directory_.free_number();
    commons_.queues.reserve(number, rings.send); // first, because it may throw
    commons_.shares.reserve(commons_.queues.queues());
    rings.send.entries.queue = number;
    auto made = std::make_unique<queue_pair>(rings, service, keys_, commons_);
    directory_.put(number, {.receiver = made.get(), .home = this});
    commons_.queues.put(number, std::move(made));
    return number;
}

void rdma_unit::restart(std::uint32_t number, const pair_rings& rings)
{
    find(number)->restart(rings);
    commons_.queues.rouse(number);
    directory_.note_addresses();
}

void rdma_unit::modify(std::uint32_t number, rdma_state to, const rdma_connection& how, const pair_rings& rings)
{
    find(number)->modify(to, how, rings);
    commons_.queues.rouse(number);
    directory_.note_addresses();
}

void rdma_unit::remove(std::uint32_t number) noexcept
{
    find(number)->stop_silently();
    const std::unique_ptr<turn_taker> gone = commons_.queues.take(number);
    directory_.erase(number);
}

void rdma_unit::find_peer_of(queue_pair& queue) noexcept
{
    const bool ours = directory_.is_ours({.address = net::header_address_of(queue.peer()), .vlan = queue.vlan()});
    queue_pair* const partner = ours && !by_packet_ && !trace_ ? find(queue.peer_number()) : nullptr;
    queue.find_peer(ours, partner != nullptr && partner->is_partner_of(queue) ? partner : nullptr);
}

/// Without a claimed address, no packet is asked for.
void rdma_unit::addresses_changed(bool any)
{
    for_each([this](std::uint32_t, queue_pair& queue) {
        if (queue.connected())
            find_peer_of(queue);
    });
    if (any)
        receiver_.admit(*this);
    else
        receiver_.dismiss(*this);
}

} // namespace weftio::nic::soft
