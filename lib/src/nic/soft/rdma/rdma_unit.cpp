#include "nic/soft/rdma/rdma_unit.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <utility>

#include "nic/soft/rdma/datagram_pair.hpp"

namespace weftio::nic::soft {

rdma_unit::rdma_unit(const dpdk::port_queue& port_queue, const keys::nic_keys& keys, receiver& receiver,
                     roce_directory& directory, turn_rounds& rounds, bool by_packet)
    : keys_(keys), receiver_(receiver), directory_(directory), by_packet_(by_packet || port_queue.is_watched()),
      folder_(folder_of_traces()), commons_(port_queue, directory.first(), rounds),
      arrivals_(commons_, receiver, directory)
{
    directory.add_unit(*this);
    if (!folder_.empty())
        trace_packets();
}

/// RDMA step 2. Idle queue pairs cost the same as idle send queues: a few doorbell records are polled.
unsigned rdma_unit::turn(const turn_budget& budget)
{
    unsigned moved = arrivals_.take_in();
    if (commons_.queues.empty()) {
        commons_.sender.flush(); // answers to ARP and ND
        return moved;
    }
    moved += arrivals_.take_own();
    commons_.queues.poll_for_work(budget.busy || moved != 0);
    commons_.queues.wake_those_due();
    moved += commons_.queues.turn(std::min(budget.entries, share_)).moved;
    if (commons_.staged.any()) [[unlikely]]
        moved += serve_staged();
    commons_.sender.flush();
    if (!folder_.empty())
        write_traces_of_failures();
    share_packets();
    moved += commons_.shares.has_deferred(); // which is work
    commons_.shares.next_turn(budget.moved_before > ours_before_,
                              [&](std::uint32_t number) { commons_.queues.wake(number); });
    ours_before_ = moved + arrivals_.taken();
    return moved;
}

/// The copies of the turn begin, and packets whose copies are made leave. Copies under way are work: the next turn
/// comes soon.
unsigned rdma_unit::serve_staged()
{
    commons_.sender.pass_all();
    commons_.staged.end_turn(commons_.rounds.begun());
    commons_.staged.take_up();
    return commons_.sender.release_held() + commons_.staged.pending();
}

void rdma_unit::add_staged(std::shared_ptr<devices::device_backend> device, std::unique_ptr<staged_stream> stream)
{
    commons_.staged.add(std::move(device), std::move(stream));
    set_ways_to_peers();
}

/// When there was no room for all packets, each queue pair may send less, so that those that have their turn first
/// leave room for the others.
void rdma_unit::share_packets() noexcept
{
    share_ = commons_.sender.ran_out() ? std::max(share_ / 2, 1u) : std::min(share_ * 2, any_pair::packets_of_a_turn);
}

void rdma_unit::trace_packets()
{
    if (trace_)
        return;
    trace_ = std::make_unique<packet_trace>();
    commons_.sender.trace_to(*trace_);
    arrivals_.trace_to(*trace_);
    set_ways_to_peers();
}

/// For queue pairs that have failed in this turn. Their NAKs have been sent, so the trace contains them.
void rdma_unit::write_traces_of_failures()
{
    for_each([this](std::uint32_t number, any_pair& queue) {
        if (queue.take_failure())
            write_trace_of_failure(*trace_, folder_, number, queue.dump().last_error);
    });
}

void rdma_unit::ask(const net::roce_gid& from, const net::roce_gid& target)
{
    std::array<std::uint8_t, net::most_neighbor_bytes> question;
    const std::size_t bytes = directory_.addresses().ask(from, target, question);
    commons_.sender.put(std::span<const std::uint8_t>(question).first(bytes));
    commons_.sender.flush();
}

std::uint32_t rdma_unit::add(pair_rings rings, rdma_service service)
{
    const std::uint32_t number = directory_.free_number();
    commons_.queues.reserve(number, rings.send); // first, because it may throw
    commons_.shares.reserve(commons_.queues.queues());
    rings.send.entries.queue = number;
    std::unique_ptr<any_pair> made;
    if (service == rdma_service::datagram)
        made = std::make_unique<datagram_pair>(rings, keys_, commons_, directory_);
    else
        made = std::make_unique<queue_pair>(rings, service, keys_, commons_);
    directory_.put(number, {.receiver = made.get(), .home = &arrivals_, .number = number});
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

namespace {

void add_to(rdma_counters& into, const rdma_counters& more) noexcept
{
    using all = std::array<std::uint64_t, sizeof(rdma_counters) / sizeof(std::uint64_t)>;
    auto sums = std::bit_cast<all>(into);
    const auto values = std::bit_cast<all>(more);
    std::ranges::transform(sums, values, sums.begin(), std::plus());
    into = std::bit_cast<rdma_counters>(sums);
}

} // namespace

void rdma_unit::count(rdma_port_counters& into) const noexcept
{
    const roce_sender& sent = commons_.sender;
    const std::uint64_t copied = sent.copied.value(), icrc = arrivals_.rx_icrc_encapsulated.value();
    into.sent += sent.sent.value();
    into.sent_bytes += sent.sent_bytes.value();
    into.received += arrivals_.claimed.value() - arrivals_.neighbor.value() - arrivals_.inbox_full.value() + copied;
    into.received_bytes += arrivals_.received_bytes.value() + sent.copied_bytes.value();
    into.damaged +=
        arrivals_.malformed.value() + arrivals_.wrong_ip_checksum.value() + arrivals_.wrong_udp_checksum.value() + icrc;
    into.rx_icrc_encapsulated += icrc;
    into.lost += arrivals_.inbox_full.value();
    into.congestion += arrivals_.congestion.value();
    add_to(into.queues, of_ended_);
    for_each([&](std::uint32_t, const any_pair& queue) { add_to(into.queues, queue.counters()); });
}

void rdma_unit::remove(std::uint32_t number) noexcept
{
    find(number)->stop_silently();
    add_to(of_ended_, find(number)->counters());
    const std::unique_ptr<turn_taker> gone = commons_.queues.take(number);
    directory_.erase(number);
}

void rdma_unit::take_management(std::uint32_t number)
{
    directory_.take_management(number);
    dynamic_cast<datagram_pair&>(*find(number)).take_management();
}

void rdma_unit::attach(std::uint32_t number, const net::roce_gid& group)
{
    directory_.join(net::header_address_of(group), number);
}

bool rdma_unit::detach(std::uint32_t number, const net::roce_gid& group) noexcept
{
    return directory_.leave(net::header_address_of(group), number);
}

void rdma_unit::set_ways_to_peers() noexcept
{
    for_each([this](std::uint32_t, any_pair& each) {
        auto* const queue = dynamic_cast<queue_pair*>(&each);
        if (queue == nullptr || !queue->connected())
            return;
        const bool ours = directory_.is_ours({.address = net::header_address_of(queue->peer()), .vlan = queue->vlan()});
        auto* const partner = ours && !by_packet_ && !trace_ && !commons_.staged.any()
                                  ? dynamic_cast<queue_pair*>(find(queue->peer_number()))
                                  : nullptr;
        queue->set_way_to_peer(ours, partner != nullptr && partner->is_partner_of(*queue) ? partner : nullptr);
    });
}

/// Without a claimed address, no packet is asked for.
void rdma_unit::addresses_changed(bool any)
{
    set_ways_to_peers();
    if (any)
        receiver_.admit(arrivals_);
    else
        receiver_.dismiss(arrivals_);
}

} // namespace weftio::nic::soft
