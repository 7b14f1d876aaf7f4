#include "nic/soft/rdma/rdma_unit.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/clock.hpp"
#include "core/guarded.hpp"
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

rdma_unit::rdma_unit(const dpdk::wire& wire, const keys::nic_keys& keys, receiver& receiver, bool by_packet)
    : pair_port(wire), keys_(keys), receiver_(receiver), by_packet_(by_packet || wire.dump),
      folder_(folder_of_traces()), queues_(wire.first_queue_number)
{
    if (!folder_.empty())
        trace_packets();
}

/// Send step 2 for queue pairs. Idle ones cost the same as idle send queues: a few doorbell records are polled.
unsigned rdma_unit::turn(const turn_budget& budget)
{
    if (queues_.empty()) {
        wire.flush(); // answers to ARP and ND
        return 0;
    }
    unsigned moved = take_own();
    queues_.poll_for_work(budget.busy || moved != 0);
    queues_.wake_those_due();
    moved += queues_.turn(std::min(budget.entries, share_)).moved;
    wire.flush();
    if (!folder_.empty())
        write_traces_of_failures();
    share_packets();
    moved += shares.has_deferred(); // which is work
    shares.next_turn(budget.moved_before > ours_before_, [&](std::uint32_t number) { queues_.wake(number); });
    ours_before_ = moved + std::exchange(taken_, 0);
    return moved;
}

/// Queue pairs always have turns in the same order. When there was no room for all packets, each may send less, so that
/// the first ones leave room for the others.
void rdma_unit::share_packets() noexcept
{
    share_ = wire.ran_out() ? std::max(share_ / 2, 1u) : std::min(share_ * 2, queue_pair::packets_of_a_turn);
}

/// From now on, queue pairs of this port exchange real packets.
void rdma_unit::trace_packets()
{
    if (trace_)
        return;
    trace_ = std::make_unique<packet_trace>();
    wire.trace_to(*trace_);
    note_addresses();
}

void rdma_unit::note(const rte_mbuf& mbuf) noexcept
{
    if (trace_)
        trace_->note(begin_of(mbuf), mbuf.pkt_len, core::utc_stamp_ns(), net::frame_direction::received);
}

/// For queue pairs that have failed in this turn. Their NAKs have been sent, so the trace contains them.
void rdma_unit::write_traces_of_failures()
{
    for (std::uint32_t number = first(); number <= last(); ++number)
        if (queue_pair* queue = find(number); queue && queue->take_failure())
            write_trace_of_failure(*trace_, folder_, number, queue->dump().last_error);
}

/// Takes packets between queue pairs of this port. They carry no ICRC.
unsigned rdma_unit::take_own()
{
    const std::span<rte_mbuf* const> all = wire.take_own();
    for (rte_mbuf* const mbuf : all) {
        claimed.add(1);
        note(*mbuf);
        const std::span<const std::uint8_t> frame = begin_of(*mbuf);
        deliver(frame, net::parse(frame, std::nullopt), true).add(1);
        rte_pktmbuf_free(mbuf);
    }
    return static_cast<unsigned>(all.size());
}

rdma_unit::claimed_address rdma_unit::claimed_address_of(const queue_pair& queue) noexcept
{
    return {.address = net::header_address_of(queue.address()), .vlan = queue.vlan()};
}

bool rdma_unit::is_ours(const claimed_address& at) const noexcept
{
    return std::find(claimed_addresses_.begin(), claimed_addresses_.end(), at) != claimed_addresses_.end();
}

bool rdma_unit::is_to_us(const net::packet_headers& headers) const noexcept
{
    return std::any_of(claimed_addresses_.begin(), claimed_addresses_.end(), [&](const claimed_address& at) {
        return at.address.is(headers.l3, headers.destination) && at.vlan == vlan_of(headers.vlan_id());
    });
}

bool rdma_unit::claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept
{
    return is_roce(headers) ? is_to_us(headers) : neighbors_.claims(begin_of(mbuf), headers);
}

void rdma_unit::take(rte_mbuf& mbuf, const net::packet_headers& headers)
{
    std::array<std::uint8_t, most_frame_bytes> copy;
    claimed.add(1);
    note(mbuf);
    ++taken_;
    (is_roce(headers) ? deliver(in_one_piece(mbuf, copy), headers, false) : meet(begin_of(mbuf), headers)).add(1);
}

/// Learns a neighbor's MAC, or answers with ours. If there is no room to send, the answer is lost, as it may be on the
/// way.
core::counter& rdma_unit::meet(std::span<const std::uint8_t> frame, const net::packet_headers& headers)
{
    std::array<std::uint8_t, net::most_neighbor_bytes> answer;
    if (const std::size_t bytes = neighbors_.take(frame, headers, answer); bytes != 0)
        wire.put(std::span(answer).first(bytes));
    return neighbor;
}

void rdma_unit::ask(const net::roce_gid& from, const net::roce_gid& target)
{
    std::array<std::uint8_t, net::most_neighbor_bytes> question;
    const std::size_t bytes = neighbors_.ask(from, target, question);
    wire.put(std::span<const std::uint8_t>(question).first(bytes));
    wire.flush();
}

void rdma_unit::add_address(const rdma_own_address& own)
{
    claimed_addresses_.reserve(queues_.queues() + neighbors_.count() + 1);
    neighbors_.add(own);
    note_addresses();
}

void rdma_unit::remove_address(const net::roce_gid& address)
{
    neighbors_.remove(address);
    note_addresses();
}

/// Verifies the checksums of IP and UDP, and the ICRC. Returns the counter of the first that is wrong, or nullptr.
core::counter* rdma_unit::damage(std::span<const std::uint8_t> frame, const net::packet_headers& headers,
                                 const net::roce_packet& packet) noexcept
{
    switch (net::wrong_checksum_of(frame, headers)) {
        case net::wrong_checksum::ip: return &wrong_ip_checksum;
        case net::wrong_checksum::udp: return &wrong_udp_checksum;
        case net::wrong_checksum::none: break;
    }
    return packet.icrc_good() ? nullptr : &rx_icrc_encapsulated;
}

/// Receive step 3 for queue pairs. Verifies the checksums before any field of the packet is used, unless the packet
/// comes from this port. Returns the counter for the packet.
core::counter& rdma_unit::deliver(std::span<const std::uint8_t> frame, const net::packet_headers& headers, bool own)
{
    net::roce_packet packet;
    const net::roce_refusal form = net::parse_roce(frame, headers, packet);
    const bool congests = net::service_of(packet.headers.bth.opcode) == net::roce_service::congestion;
    if (form != net::roce_refusal::none && (!net::is_invalid_request(form) || congests))
        return malformed;
    if (core::counter* const damaged = own ? nullptr : damage(frame, headers, packet))
        return *damaged;
    if (congests)
        return congestion;
    const std::uint32_t number = packet.headers.bth.destination_qp;
    queue_pair* const queue = find(number);
    if (!queue)
        return for_nobody;
    if (!queue->is_from_peer(headers))
        return not_from_peer;
    if (!own && !queue->is_to_our_mac(frame))
        return other_mac;
    queue->receive(packet);
    queues_.wake(number);
    return delivered;
}

std::uint32_t rdma_unit::take_number()
{
    for (std::uint32_t tried = 0; tried != dpdk::wire::queue_numbers; ++tried) {
        const std::uint32_t number = next_number_;
        next_number_ = number == first() + dpdk::wire::queue_numbers - 1 ? first() : number + 1;
        if (!queues_.find(number))
            return number;
    }
    throw error(errc::out_of_memory,
                fmt::format("weftio: rdma_queue: the port has {} queue pairs, the maximum; close some",
                            dpdk::wire::queue_numbers));
}

std::uint32_t rdma_unit::add(pair_rings rings)
{
    const std::uint32_t number = take_number();
    queues_.reserve(number, rings.send); // first, because it may throw
    shares.reserve(queues_.queues());
    rings.send.entries.queue = number;
    queues_.put(number, std::make_unique<queue_pair>(rings, keys_, static_cast<pair_port&>(*this)));
    return number;
}

void rdma_unit::connect(std::uint32_t number, const rdma_connection& to)
{
    claimed_addresses_.reserve(queues_.queues() + neighbors_.count());
    find(number)->connect(to);
    queues_.wake(number);
    note_addresses();
}

void rdma_unit::restart(std::uint32_t number, const pair_rings& rings)
{
    find(number)->restart(rings);
    queues_.rouse(number);
    note_addresses();
}

void rdma_unit::modify(std::uint32_t number, rdma_state to, const rdma_connection& how, const pair_rings& rings)
{
    claimed_addresses_.reserve(queues_.queues() + neighbors_.count());
    find(number)->modify(to, how, rings);
    queues_.rouse(number);
    note_addresses();
}

void rdma_unit::remove(std::uint32_t number) noexcept
{
    find(number)->stop_silently();
    queues_.take(number);
    note_addresses();
}

void rdma_unit::find_peer_of(queue_pair& queue) noexcept
{
    const bool ours = is_ours({.address = net::header_address_of(queue.peer()), .vlan = queue.vlan()});
    queue_pair* const partner = ours && !by_packet_ && !trace_ ? find(queue.peer_number()) : nullptr;
    queue.find_peer(ours, partner != nullptr && partner->is_partner_of(queue) ? partner : nullptr);
}

/// Packets are claimed for the port's own addresses and those of connected queue pairs. Without any, no packet is
/// claimed.
void rdma_unit::note_addresses()
{
    claimed_addresses_.clear();
    neighbors_.for_each([&](const rdma_own_address& own) {
        claimed_addresses_.push_back({.address = net::header_address_of(own.address), .vlan = vlan_of(own.vlan_tci)});
    });
    for (std::uint32_t number = first(); number <= last(); ++number)
        if (const queue_pair* queue = find(number); queue && queue->connected())
            if (!is_ours(claimed_address_of(*queue)))
                claimed_addresses_.push_back(claimed_address_of(*queue));
    for (std::uint32_t number = first(); number <= last(); ++number)
        if (queue_pair* queue = find(number); queue && queue->connected())
            find_peer_of(*queue);
    if (claimed_addresses_.empty())
        receiver_.dismiss(*this);
    else
        receiver_.admit(*this);
}

} // namespace weftio::nic::soft
