#include "nic/soft/rdma/rdma_unit.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>

#include "net/packet_headers.hpp"
#include "weftio/error.hpp"

namespace weftio::nic {

namespace {

constexpr std::size_t most_frame_bytes = most_roce_headers_bytes + largest_path_mtu + 3 + icrc_bytes;

/// The bytes of a packet in one piece: where they lie, or a copy. Empty when no packet is so long.
std::span<const std::uint8_t> in_one_piece(const rte_mbuf& mbuf, std::span<std::uint8_t> copy)
{
    if (mbuf.nb_segs == 1)
        return {rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len};
    if (mbuf.pkt_len > copy.size())
        return {};
    const void* const bytes = rte_pktmbuf_read(&mbuf, 0, mbuf.pkt_len, copy.data());
    return {static_cast<const std::uint8_t*>(bytes), mbuf.pkt_len};
}

roce_gid destination_of(const packet_headers& headers) noexcept
{
    if (headers.l3 == l3_kind::ipv6)
        return headers.destination;
    return gid_of_ipv4(std::span(headers.destination).first<4>());
}

} // namespace

/// Send step 2 for queue pairs. Idle ones cost what idle send queues cost: a look at a few doorbells.
unsigned rdma_unit::turn(const turn_budget& budget)
{
    if (queues_.in_use() == 0)
        return 0;
    unsigned moved = take_own();
    queues_.look_at_doorbells(budget.busy || moved != 0);
    moved += queues_.turn(std::min(budget.entries, share_)).moved;
    wire_.flush();
    share_room();
    return moved;
}

/// Queue pairs have their turns in the same order again and again: while there is no room for all, each gets less, so
/// that the first ones leave some.
void rdma_unit::share_room() noexcept
{
    share_ = wire_.ran_out() ? std::max(share_ / 2, 1u) : std::min(share_ * 2, queue_pair::packets_of_a_turn);
}

/// Packets between queue pairs of this port.
unsigned rdma_unit::take_own()
{
    const std::span<rte_mbuf* const> all = wire_.take_own();
    for (rte_mbuf* const mbuf : all) {
        take(*mbuf, parse({rte_pktmbuf_mtod(mbuf, const std::uint8_t*), mbuf->data_len}, std::nullopt));
        rte_pktmbuf_free(mbuf);
    }
    return static_cast<unsigned>(all.size());
}

bool rdma_unit::is_ours(const roce_gid& address) const noexcept
{
    return std::find(addresses_.begin(), addresses_.end(), address) != addresses_.end();
}

bool rdma_unit::claims(const packet_headers& headers) const noexcept
{
    return headers.l4 == l4_kind::udp && headers.destination_port == roce_port && is_ours(destination_of(headers));
}

void rdma_unit::take(rte_mbuf& mbuf, const packet_headers& headers)
{
    std::array<std::uint8_t, most_frame_bytes> copy;
    claimed.add(1);
    deliver(in_one_piece(mbuf, copy), headers).add(1);
}

/// Receive step 3 for queue pairs. The ICRC is checked before anything that the packet says is relied on. Returns what
/// the packet counts as.
detail::counter& rdma_unit::deliver(std::span<const std::uint8_t> frame, const packet_headers& headers)
{
    roce_packet packet;
    if (parse_roce(frame, headers, packet) != roce_refusal::none)
        return malformed;
    if (!packet.icrc_good())
        return rx_icrc_encapsulated;
    if (shape_of(packet.headers.bth.opcode).service == roce_service::congestion)
        return congestion;
    const std::uint32_t number = packet.headers.bth.destination_qp;
    queue_pair* const queue = number < first_number ? nullptr : find(number);
    if (!queue)
        return for_nobody;
    if (!queue->is_from_peer(packet))
        return not_from_peer;
    queue->receive(packet);
    queues_.wake(number);
    return delivered;
}

std::uint32_t rdma_unit::take_number()
{
    for (std::uint32_t tried = first_number; tried <= last_number; ++tried) {
        const std::uint32_t number = next_number_;
        next_number_ = number == last_number ? first_number : number + 1;
        if (!queues_.find(number))
            return number;
    }
    throw error(errc::out_of_memory,
                fmt::format("weftio: rdma_queue: the port has {} queue pairs, and no number is free; close some",
                            last_number - first_number + 1));
}

std::uint32_t rdma_unit::add(rdma_rings rings)
{
    const std::uint32_t number = take_number();
    queues_.reserve(number); // allocates, so it comes before anything changes
    rings.send.entries.queue = number;
    queues_.put(number, std::make_unique<queue_pair>(rings, keys_, wire_));
    return number;
}

void rdma_unit::connect(std::uint32_t number, const rdma_connection& to)
{
    addresses_.reserve(queues_.queues());
    find(number)->connect(to);
    queues_.wake(number);
    note_addresses();
}

void rdma_unit::restart(std::uint32_t number, const rdma_rings& rings)
{
    find(number)->restart(rings);
    queues_.rouse(number);
    note_addresses();
}

void rdma_unit::remove(std::uint32_t number) noexcept
{
    find(number)->stop();
    queues_.take(number);
    note_addresses();
}

/// Packets are claimed for the addresses of connected queue pairs, and none without.
void rdma_unit::note_addresses()
{
    addresses_.clear();
    for (std::uint32_t number = first_number; number <= queues_.queues(); ++number)
        if (const queue_pair* queue = find(number); queue && queue->connected())
            if (!is_ours(queue->address()))
                addresses_.push_back(queue->address());
    for (std::uint32_t number = first_number; number <= queues_.queues(); ++number)
        if (queue_pair* queue = find(number); queue && queue->connected())
            queue->be_local(is_ours(queue->peer()));
    receiver_.claim_for(addresses_.empty() ? nullptr : this);
}

} // namespace weftio::nic
