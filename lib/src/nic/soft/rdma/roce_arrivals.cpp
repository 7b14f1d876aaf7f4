#include "nic/soft/rdma/roce_arrivals.hpp"

#include <rte_mbuf.h>

#include <algorithm>
#include <array>

#include "core/clock.hpp"
#include "net/checksum.hpp"
#include "net/packet_headers.hpp"

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

roce_arrivals::~roce_arrivals()
{
    if (inbox_)
        inbox_->for_each([](const handed& packet) { rte_pktmbuf_free(packet.mbuf); });
}

bool roce_arrivals::claims(const rte_mbuf& mbuf, const net::packet_headers& headers) const noexcept
{
    return is_roce(headers) ? directory_.is_to_us(headers) : directory_.addresses().claims(begin_of(mbuf), headers);
}

bool roce_arrivals::take(rte_mbuf& mbuf, const net::packet_headers& headers)
{
    ++taken_;
    const mbuf_is what = process(mbuf, headers, false);
    if (what == mbuf_is::left_here)
        count(inbox_full);
    return what == mbuf_is::given;
}

unsigned roce_arrivals::take_in()
{
    if (!inbox_)
        return 0;
    std::array<handed, 32> packets;
    const std::size_t all = inbox_->waiting();
    for (std::size_t left = all, some = 0; left != 0; left -= some) {
        some = inbox_->take(packets.data(), std::min(left, packets.size()));
        if (some == 0)
            return static_cast<unsigned>(all - left);
        for (const handed& each : std::span(packets).first(some)) {
            const mbuf_is what = process(*each.mbuf, each.headers, each.own);
            if (what == mbuf_is::left_here) // its number has gone to a queue pair of another engine
                count(inbox_full);
            if (what != mbuf_is::given)
                rte_pktmbuf_free(each.mbuf);
        }
    }
    return static_cast<unsigned>(all);
}

unsigned roce_arrivals::take_own()
{
    const std::span<rte_mbuf* const> all = commons_.sender.take_own();
    for (std::size_t at = 0; at != all.size(); ++at) {
        const mbuf_is what = process(*all[at], net::parse(begin_of(*all[at]), std::nullopt), true);
        if (what == mbuf_is::left_here) {
            commons_.sender.put_back_own(all.subspan(at));
            return static_cast<unsigned>(at);
        }
        if (what == mbuf_is::done)
            rte_pktmbuf_free(all[at]);
    }
    return static_cast<unsigned>(all.size());
}

/// Processes a claimed packet here, or hands it to the engine that does.
roce_arrivals::mbuf_is roce_arrivals::process(rte_mbuf& mbuf, const net::packet_headers& headers, bool own)
{
    std::array<std::uint8_t, most_frame_bytes> copy;
    if (!is_roce(headers)) {
        if (roce_arrivals& to = directory_.neighbors_home(); &to != this)
            return hand_over(to, mbuf, headers, own);
        note(mbuf);
        count(meet(begin_of(mbuf), headers));
        return mbuf_is::done;
    }
    net::roce_packet packet;
    const std::span<const std::uint8_t> frame = in_one_piece(mbuf, copy);
    const net::roce_refusal form = net::parse_roce(frame, headers, packet);
    const roce_directory::entry to = directory_.find(packet.headers.bth.destination_qp);
    if (to.home != this && to.home != nullptr)
        return hand_over(*to.home, mbuf, headers, own);
    note(mbuf);
    received_bytes.add(mbuf.pkt_len);
    count(deliver({packet, headers, frame, own}, form, to));
    return mbuf_is::done;
}

/// The mbuf may be in a slot of a queue of this engine; then the other engine gets a copy.
roce_arrivals::mbuf_is roce_arrivals::hand_over(roce_arrivals& to, rte_mbuf& mbuf, const net::packet_headers& headers,
                                                bool own) noexcept
{
    rte_mbuf* const given = to.inbox_->has_room() ? receiver_.to_hand_over(mbuf) : nullptr;
    if (given && to.inbox_->put({given, headers, own}))
        return given == &mbuf ? mbuf_is::given : mbuf_is::done;
    if (given != &mbuf)
        rte_pktmbuf_free(given);
    return mbuf_is::left_here;
}

/// RDMA step 7. Before the checksums are verified, only the form of the headers and the queue number are used. Those of
/// packets from this port are not verified. Returns the counter for the packet.
[[gnu::always_inline]] inline core::counter& roce_arrivals::deliver(const roce_arrival& arrival, net::roce_refusal form,
                                                                    const roce_directory::entry& to)
{
    const auto& bth = arrival.packet.headers.bth;
    const bool congests = net::service_of(bth.opcode) == net::roce_service::congestion;
    if (form != net::roce_refusal::none && (!net::is_invalid_request(form) || congests))
        return malformed;
    if (core::counter* const damaged = arrival.own ? nullptr : damage(arrival))
        return *damaged;
    if (congests)
        return congestion;
    if (!to.receiver)
        return bth.destination_qp == roce_directory::number_of_groups ? deliver_to_group(arrival) : for_nobody;
    const roce_verdict verdict = to.receiver->receive(arrival);
    if (verdict == roce_verdict::delivered)
        commons_.queues.wake(to.number);
    return verdict == roce_verdict::delivered       ? delivered
           : verdict == roce_verdict::not_from_peer ? not_from_peer
                                                    : other_mac;
}

/// Each member gets the datagram.
core::counter& roce_arrivals::deliver_to_group(const roce_arrival& arrival)
{
    bool any = false;
    directory_.for_each_member({.bytes = arrival.headers.destination, .l3 = arrival.headers.l3},
                               [&](std::uint32_t number, roce_receiver& member) {
                                   if (member.receive(arrival) != roce_verdict::delivered)
                                       return;
                                   commons_.queues.wake(number);
                                   any = true;
                               });
    return any ? delivered : for_nobody;
}

/// Verifies the checksums of IP and UDP, and the ICRC. Returns the counter of the first that is wrong, or nullptr.
core::counter* roce_arrivals::damage(const roce_arrival& arrival) noexcept
{
    switch (net::wrong_checksum_of(arrival.frame, arrival.headers)) {
        case net::wrong_checksum::ip: return &wrong_ip_checksum;
        case net::wrong_checksum::udp: return &wrong_udp_checksum;
        case net::wrong_checksum::none: break;
    }
    return arrival.packet.icrc_good() ? nullptr : &rx_icrc_encapsulated;
}

/// Learns a neighbor's MAC, or answers with ours. If there is no room to send, the answer is lost, as it may be on the
/// way.
core::counter& roce_arrivals::meet(std::span<const std::uint8_t> frame, const net::packet_headers& headers)
{
    std::array<std::uint8_t, net::most_neighbor_bytes> answer;
    if (const std::size_t bytes = directory_.addresses().take(frame, headers, answer); bytes != 0)
        commons_.sender.put(std::span(answer).first(bytes));
    return neighbor;
}

void roce_arrivals::count(core::counter& result) noexcept
{
    claimed.add(1);
    result.add(1);
}

void roce_arrivals::note(const rte_mbuf& mbuf) noexcept
{
    if (trace_)
        trace_->note(begin_of(mbuf), mbuf.pkt_len, core::utc_stamp_ns(), net::frame_direction::received);
}

} // namespace weftio::nic::soft
