#include "nic/soft/rdma/datagram_pair.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "net/neighbor_messages.hpp"

namespace weftio::nic::soft {

namespace {

/// The address as neighbors have it.
net::roce_gid gid_of(net::l3_kind l3, const std::array<std::uint8_t, 16>& address) noexcept
{
    return l3 == net::l3_kind::ipv4 ? net::gid_of_ipv4(std::span(address).first<4>()) : address;
}

/// What the completion of a receive says of its sender.
std::uint32_t source_of(const roce_arrival& arrival) noexcept
{
    const std::uint32_t kind =
        arrival.headers.l3 == net::l3_kind::ipv4 ? WEFTIO_CQE_DATAGRAM_IPV4 : WEFTIO_CQE_DATAGRAM_IPV6;
    return kind | arrival.packet.headers.source_qp;
}

} // namespace

datagram_pair::datagram_pair(const pair_rings& rings, const keys::nic_keys& keys, pair_commons& commons,
                             roce_directory& directory)
    : any_pair(rings, rdma_service::datagram, keys, commons), directory_(directory), source_(number())
{
    staged_.follow(nullptr, &route_.front());
    rest(rings);
}

void datagram_pair::modify(rdma_state to, const rdma_connection& how, const pair_rings& rings)
{
    const bool ends = to == rdma_state::reset || to == rdma_state::error;
    if (!ends && state() == rdma_state::error)
        return; // failed after the caller had checked: same as a failure right after the change of state
    if (to == rdma_state::reset) {
        stop_silently();
        return rest(rings);
    }
    if (state_ == rdma_state::reset)
        restart(rings);
    if (to == rdma_state::error)
        return stop();
    sources_ = how.sources;
    if (state_ == rdma_state::ready_to_receive)
        psn_ = how.send_psn;
    if (state_ == rdma_state::send_queue_error) {
        sends_.read_doorbell_record();
        sends_.flush_unread(); // flushes what was posted in SQE, even if no turn has read the doorbell record since
        sends_.mend();
    }
    settings_ = how;
    state_ = to;
}

bool datagram_pair::may_receive() const noexcept
{
    return state() != rdma_state::reset && state() != rdma_state::init && state() != rdma_state::error &&
           receives_.failure() == refusal::none;
}

/// Whether the frame has the MAC of the address that the packet is for, or a group MAC.
bool datagram_pair::is_to_our_mac(const roce_arrival& arrival) const noexcept
{
    if (arrival.own || (arrival.frame[0] & 1) != 0)
        return true;
    const auto ours = directory_.addresses().own_mac(gid_of(arrival.headers.l3, arrival.headers.destination));
    return ours && std::memcmp(arrival.frame.data(), ours->data(), ours->size()) == 0;
}

roce_verdict datagram_pair::receive(const roce_arrival& arrival)
{
    if (!may_receive())
        return roce_verdict::not_from_peer;
    if (!is_to_our_mac(arrival))
        return roce_verdict::other_mac;
    requests_.add(1);
    if (!is_datagram_for_us(arrival)) {
        ignored_.add(1);
    } else if (arrival.packet.headers.queue_key != settings_.queue_key) {
        refused_.add(1);
        refused_by_.add(refusal::wrong_queue_key, 1);
    } else {
        accept(arrival);
    }
    return roce_verdict::delivered;
}

/// Checks the form, the partition, the length, and that a group's datagrams have the number of groups.
bool datagram_pair::is_datagram_for_us(const roce_arrival& arrival) const noexcept
{
    const net::roce_packet& packet = arrival.packet;
    const bool to_group = net::is_group(gid_of(arrival.headers.l3, arrival.headers.destination));
    return packet.form == net::roce_refusal::none &&
           net::service_of(packet.headers.bth.opcode) == net::roce_service::ud &&
           roce::same_partition(settings_, packet.headers) && packet.payload.size() <= settings_.path_mtu &&
           to_group == (packet.headers.bth.destination_qp == roce_directory::number_of_groups) && !sources_.empty() &&
           vlan_of(arrival.headers.vlan_id()) == vlan_of(sources_.front().vlan_tci);
}

/// Completes earlier entries first: the datagram may be the answer to one of them.
void datagram_pair::accept(const roce_arrival& arrival)
{
    if (sends_.has_ended())
        sends_.publish();
    switch (receives_.take()) {
        case roce::taken::none: not_ready_.add(1); return;
        case roce::taken::refused: ignored_.add(1); return; // the next turn ends the queue pair
        case roce::taken::entry: break;
    }
    if (source_ == roce_directory::number_of_management)
        note_mac(arrival);
    const net::roce_packet& packet = arrival.packet;
    const refusal why = fill(arrival);
    if (why == roce::not_now) { // there is no memory for a copy: the datagram is lost
        receives_.give_back();
        ignored_.add(1);
        return;
    }
    const bool good = why == refusal::none;
    (good ? executed_ : refused_).add(1);
    if (!good)
        refused_by_.add(why, 1);
    const bool has_immediate = net::shape_of(packet.headers.bth.opcode).has_immediate;
    receives_.complete({.result = why,
                        .by = has_immediate ? roce::filled_by::send_immediate : roce::filled_by::send,
                        .bytes = good ? header_bytes + static_cast<std::uint32_t>(packet.payload.size()) : 0,
                        .immediate_or_key = packet.headers.immediate,
                        .solicited = packet.headers.bth.solicited,
                        .source = source_of(arrival)});
}

void datagram_pair::note_mac(const roce_arrival& arrival)
{
    net::mac_address mac{};
    std::copy_n(arrival.frame.begin() + mac.size(), mac.size(), mac.begin());
    directory_.heard().note(gid_of(arrival.headers.l3, arrival.headers.source), mac, std::chrono::steady_clock::now());
}

/// The IP header, behind 20 bytes of 0 if it is of IPv4, and the payload.
refusal datagram_pair::fill(const roce_arrival& arrival)
{
    const std::size_t ip_bytes = arrival.headers.l3 == net::l3_kind::ipv4 ? 20 : 40;
    std::array<std::uint8_t, header_bytes> place{};
    std::copy_n(arrival.frame.begin() + arrival.headers.l3_offset, ip_bytes, place.end() - ip_bytes);
    if (const refusal why = receives_.deliver(0, place); why != refusal::none)
        return why;
    return receives_.deliver(header_bytes, arrival.packet.payload);
}

unsigned datagram_pair::turn(std::uint32_t most)
{
    sends_.read_doorbell_record();
    turns.add(1);
    if (has_overrun())
        sends_.overrun();
    if (staged_.used()) [[unlikely]] {
        settle();
        staged_.begin_sending(false);
        end_failed_copy();
    }
    end_when_broken();
    unsigned moved = send_all({std::min(most, packets_of_a_turn), commons_.shares.bytes_for(number())});
    moved += sends_.publish();
    commons_.shares.count(moved != 0, false);
    return moved;
}

/// A copy of a datagram that was to be sent was not made. A receive that failed with its copy has said so. The failure
/// is forgotten once nothing waits for it.
void datagram_pair::end_failed_copy()
{
    if (!staged_.ends_now() || staged_.failure().by_peer)
        return;
    if (state_ == rdma_state::ready_to_send) {
        if (begun_)
            end(staged_.failure().why);
        sends_.break_off();
        state_ = rdma_state::send_queue_error;
        newly_failed_ = true;
    }
    if (state_ == rdma_state::send_queue_error && !staged_.pending())
        staged_.restart();
}

unsigned datagram_pair::send_all(roce::allowance most)
{
    unsigned moved = 0;
    for (; !most.empty() && begin() && send(); ++moved)
        most.spend(current_.bytes);
    return moved;
}

/// Makes sure that there is a current message. In SQD, only the one that has begun before is sent.
bool datagram_pair::begin()
{
    if (begun_ || state() != rdma_state::ready_to_send)
        return begun_;
    current_ = {};
    current_.entry = sends_.next();
    own_copy_sent_ = false;
    begun_ = sends_.read(current_.entry, current_);
    return begun_;
}

/// @return false: there is no room now, and the message is sent later
bool datagram_pair::send()
{
    if (current_.refused != refusal::none)
        return end(current_.refused), true;
    if (current_.is_local())
        return end(sends_.execute(current_)), true;
    if (current_.bytes > settings_.path_mtu)
        return end(refusal::datagram_too_long), true;
    const ring_segments entry(sends_.ring().entries, current_.entry, current_.segments);
    if (const refusal why = route_.aim(entry, sources_, number()); why != refusal::none)
        return end(why), true;
    const net::roce_gid& to = route_.destination();
    const net::header_address address = net::header_address_of(to);
    const bool to_group = net::is_group(to);
    const bool to_own =
        to_group ? directory_.has_members(address) : directory_.is_ours({.address = address, .vlan = route_.vlan()});
    if (to_own && !own_copy_sent_ && !put(true))
        return !begun_;
    own_copy_sent_ = true;
    if ((to_group || !to_own) && !put(false))
        return !begun_;
    end(refusal::none);
    return true;
}

/// @return false: there is no room now, or the message has failed, which ends it
bool datagram_pair::put(bool to_own)
{
    roce::pieces& found = commons_.work.found;
    found.count = 0;
    if (const refusal why = sends_.gather(current_, 0, current_.bytes, found); why != refusal::none)
        return end(why), false;
    const bool immediate = current_.extra == net::roce_extra::immediate;
    const std::uint32_t key = route_.queue_key();
    net::roce_headers headers;
    headers.bth = {.opcode = immediate ? net::roce_opcode::ud_send_only_immediate : net::roce_opcode::ud_send_only,
                   .solicited = current_.solicited,
                   .partition_key = settings_.partition_key,
                   .destination_qp = route_.peer_queue(),
                   .psn = psn_};
    headers.queue_key = (key & WEFTIO_QUEUE_KEY_OWN) != 0 ? settings_.queue_key : key;
    headers.source_qp = source_;
    headers.immediate = current_.immediate_or_key;
    if (commons_.sender.put(route_.front(), to_own, headers, found.all()))
        return true;
    if (commons_.sender.payload_gone())
        end(refusal::memory_gone);
    return false;
}

/// Ends the current message. A failed one leads to SQE, in which messages still arrive.
void datagram_pair::end(refusal result)
{
    begun_ = false;
    sends_.end(current_, result);
    if (result != refusal::none) {
        state_ = rdma_state::send_queue_error;
        newly_failed_ = true;
        return sends_.flush_unread();
    }
    if (!current_.is_local()) {
        psn_ = net::psn_add(psn_, 1);
        packets_.add(1);
    }
}

/// If a receive or a doorbell record has failed, or a completion queue has overrun, flushes all entries. In SQE only
/// those of the send ring.
void datagram_pair::end_when_broken()
{
    const bool receives_failed = receives_.failure() != refusal::none;
    if (!failed() && !receives_failed)
        return;
    if (state_ == rdma_state::send_queue_error && !receives_failed && !has_overrun())
        return sends_.flush_unread();
    newly_failed_ = newly_failed_ || state_ != rdma_state::error;
    if (state_ != rdma_state::error && receives_failed)
        report_failed_receive({.reason = receives_.record_refused() ? refusal::wrong_doorbell : receives_.failure()});
    state_ = rdma_state::error;
    if (begun_)
        sends_.end(current_, refusal::flushed);
    begun_ = false;
    flush_both();
}

void datagram_pair::stop()
{
    sends_.read_doorbell_record();
    state_ = rdma_state::error;
    sends_.break_off();
    end_when_broken();
    sends_.collect();
}

void datagram_pair::restart(const pair_rings& rings)
{
    begun_ = false;
    restart_rings(rings);
}

rdma_counters datagram_pair::counters() const noexcept
{
    rdma_counters all;
    count_rings(all);
    all.requests = requests_.value();
    all.executed = executed_.value();
    all.not_ready = not_ready_.value();
    all.refused = refused_.value();
    all.ignored = ignored_.value();
    all.packets = packets_.value();
    return all;
}

rdma_dump datagram_pair::dump()
{
    rdma_dump all;
    dump_rings(all);
    all.counters = counters();
    all.path_mtu = settings_.path_mtu;
    all.next_psn = all.sent_psn = psn_;
    all.entries_in_flight = begun_;
    return all;
}

} // namespace weftio::nic::soft
