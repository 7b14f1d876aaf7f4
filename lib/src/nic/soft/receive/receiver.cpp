#include "nic/soft/receive/receiver.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "core/guarded.hpp"
#include "core/log.hpp"
#include "dpdk/capture.hpp"
#include "dpdk/receive_burst.hpp"
#include "net/checksum.hpp"
#include "nic/soft/receive/packet_claimant.hpp"
#include "nic/soft/receive/slot_pool.hpp"

namespace weftio::nic::soft {

namespace {

std::optional<std::uint16_t> stripped_tci(const rte_mbuf& mbuf)
{
    if (mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
        return mbuf.vlan_tci;
    return std::nullopt;
}

std::uint8_t header_types(const net::packet_headers& headers)
{
    unsigned types = headers.l3 == net::l3_kind::ipv6   ? WEFTIO_CQE_L3_IPV6
                     : headers.l3 == net::l3_kind::ipv4 ? WEFTIO_CQE_L3_IPV4
                                                        : 0;
    types |= headers.l4 == net::l4_kind::udp   ? WEFTIO_CQE_L4_UDP
             : headers.l4 == net::l4_kind::tcp ? WEFTIO_CQE_L4_TCP
                                               : 0;
    types |= headers.fragment ? WEFTIO_CQE_FRAGMENT : 0;
    return static_cast<std::uint8_t>(types);
}

/// Converts the receive time of a driver to UTC nanoseconds. DPDK leaves the unit to the driver, and net_pcap up to
/// 22.11 counts microseconds. A value that would be before 1973 in nanoseconds is therefore taken as microseconds.
std::uint64_t utc_ns(std::uint64_t driver_time)
{
    constexpr std::uint64_t year_1973_ns = 100'000'000'000'000'000;
    return driver_time < year_1973_ns ? driver_time * 1000 : driver_time;
}

received_frame as_frame(const rte_mbuf& mbuf)
{
    return {.start = {rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len},
            .bytes = mbuf.pkt_len,
            .stripped_tci = stripped_tci(mbuf)};
}

/// The checksums that the driver has found good, as bits of byte 28 of a completion (docs/formats.md, "Completions").
std::uint8_t driver_verdict(const rte_mbuf& mbuf)
{
    unsigned ok = WEFTIO_CQE_L2_OK;
    if ((mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
        ok |= WEFTIO_CQE_L3_OK;
    if ((mbuf.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
        ok |= WEFTIO_CQE_L4_OK;
    return static_cast<std::uint8_t>(ok);
}

/// Logs the first packet of a queue that is too long, so that the log explains the counter `too_long`.
void log_too_long(const rx_queue& queue, std::uint32_t bytes) noexcept
{
    if (queue.too_long.value() == 0)
        core::log_or_lose(log_level::warning, [&] {
            return fmt::format(
                "weftio: eth_rxq {}: dropped a packet of {} bytes or more: it exceeds a slot; further ones count as "
                "too_long; if the sender's offloads exceed its MTU, run \"ethtool -K PEER tx off tso off gso off\" "
                "there, else raise eth_rxq_options::max_packet_bytes or the MTU",
                queue.ring().number, bytes);
        });
}

} // namespace

receiver::receiver(const dpdk::port_queue& from, slot_pool* pool, bool hold, std::string capture)
    : from_(from), pool_(pool), hold_(hold), capture_(std::move(capture))
{
    timestamp_offset_ = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
    int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
    timestamp_flag_ = flag >= 0 && timestamp_offset_ >= 0 ? std::uint64_t{1} << flag : 0;
}

/// Receive steps 2 to 5 of docs/architecture.md, for one burst.
unsigned receiver::turn(const turn_budget&)
{
    unsigned moved = 0;
    for (rx_queue* queue : landing_)
        moved += queue->deliver_staged();
    if (moved != 0)
        delivered_.add(moved);
    if ((inbox_ && take_in(moved) == fate::waits) || (steering_.size() == 0 && claimants_.empty()))
        return moved;
    if (next_ == count_ && !port_lost_)
        moved += fill_burst();
    std::uint16_t before = next_;
    do
        deliver_plain();
    while (next_ < count_ && take(*mbufs_[next_]) != fate::waits);
    return moved + static_cast<unsigned>(next_ - before);
}

/// Delivers all packets that other engines have handed over when it is called. They come before packets of the port
/// queue, because a queue that has moved here must keep the order of its packets. Stops at a packet that waits.
receiver::fate receiver::take_in(unsigned& moved)
{
    for (std::size_t waiting = inbox_->waiting();;) {
        for (; handed_next_ != handed_count_; ++handed_next_, ++moved) {
            handed_packet& packet = handed_[handed_next_];
            if (packet.mbuf &&
                deliver_or_drop(*packet.mbuf, {packet.where, packet.headers, packet.real_time}) == fate::waits)
                return fate::waits;
        }
        handed_next_ = 0;
        handed_count_ = inbox_->take(handed_.data(), std::min<std::size_t>(waiting, burst));
        waiting -= handed_count_;
        if (handed_count_ == 0)
            return fate::done;
    }
}

/// Receive step 2: takes up to 64 packets from the driver. Packets in lent slots (slot_pool) are already where the
/// kernel reads them: zero copy. Returns how many of them a claimant has taken.
unsigned receiver::fill_burst()
{
    next_ = count_ = 0;
    std::uint16_t most = burst;
    // Takes no more packets than there are free slots, so that none must be copied later.
    if (rx_queue* taker = hold_ && pool_ ? taker_of_all() : nullptr; taker && taker == pool_->lender())
        most = static_cast<std::uint16_t>(std::min<std::uint32_t>(burst, taker->reclaim()));
    if (most == 0)
        return 0;
    if (const rx_queue* taker = from_.apart ? taker_of_all() : nullptr)
        taker->fetch_completions(most);
    count_ = dpdk::receive_burst(from_, mbufs_.data(), most);
    if (count_ == 0) {
        if (!capture_.empty() && !exhausted())
            end_of_capture();
        return 0;
    }
    burst_real_time_ = weftio_real_time_from_ns(core::utc_stamp_ns());
    parsed_ = !claimants_.empty();
    const unsigned claimed = parsed_ ? give_claimed() : 0;
    received_.add(count_);
    return claimed;
}

/// Prefetches what is read first for mbufs_[at]: its mbuf, and later the start of its frame.
void receiver::fetch_ahead(std::uint32_t at) const noexcept
{
    constexpr std::uint32_t frames_ahead = 4, mbufs_ahead = 8;
    if (at + mbufs_ahead < count_)
        rte_prefetch0(mbufs_[at + mbufs_ahead]);
    if (at + frames_ahead < count_)
        rte_prefetch0(rte_pktmbuf_mtod(mbufs_[at + frames_ahead], const std::uint8_t*));
}

/// Receive step 2, before steering: claimants take their packets from the burst; the other packets keep their order.
/// Returns how many packets were taken.
unsigned receiver::give_claimed()
{
    std::array<rte_mbuf*, burst> claimed;
    const std::uint16_t came = count_;
    std::uint16_t kept = 0, taken = 0;
    for (std::uint16_t at = 0; at != came; ++at) {
        fetch_ahead(at);
        rte_mbuf& mbuf = *mbufs_[at];
        const received_frame frame = as_frame(mbuf);
        net::packet_headers& headers = headers_[kept] = net::parse(frame.start, frame.stripped_tci);
        const auto owner = std::find_if(claimants_.begin(), claimants_.end(),
                                        [&](const packet_claimant* each) { return each->claims(mbuf, headers); });
        if (owner == claimants_.end()) {
            mbufs_[kept++] = &mbuf;
            continue;
        }
        if (!(*owner)->take(mbuf, headers))
            claimed[taken++] = &mbuf;
    }
    rte_pktmbuf_free_bulk(claimed.data(), taken);
    count_ = kept;
    return static_cast<unsigned>(came - kept);
}

/// The queue of this engine that gets every packet, because the first rule matches all; nullptr: packets must be
/// examined.
rx_queue* receiver::taker_of_all() const
{
    std::uint32_t number = steering_.taker_of_all();
    rx_queue* queue = number < queues_.size() ? queues_[number].get() : nullptr;
    return queue && !queue->stopped() ? queue : nullptr;
}

/// Receive step 4: puts the packet into a slot of the queue. A packet in a lent slot of the queue is there already
/// (zero copy); any other packet is copied.
receiver::placed receiver::put_in_slot(rx_queue& queue, rte_mbuf& mbuf, std::uint32_t& slot)
{
    const lent_slots lent = queue.lent();
    slot = static_cast<std::uint32_t>(lent.slot(&mbuf));
    return lent.is_in_place(mbuf) ? placed::in_slot : copy_to_slot(queue, mbuf, slot);
}

/// Receive step 4 with a copy: copies the packet into a slot.
receiver::placed receiver::copy_to_slot(rx_queue& queue, rte_mbuf& mbuf, std::uint32_t& slot) noexcept
{
    // The packet is in a lent slot of the queue, but the driver has moved its start.
    const bool own = queue.lent().contains(&mbuf) && mbuf.nb_segs == 1;
    if (!own && !queue.has_room())
        return placed::no_slot;
    slot = own ? static_cast<std::uint32_t>(queue.lent().slot(&mbuf)) : queue.take_slot();
    if (!queue.copy(slot, mbuf)) {
        queue.lose_memory();
        return placed::memory_gone;
    }
    copied_bytes_.add(mbuf.pkt_len);
    if (!own)
        rte_pktmbuf_free(&mbuf);
    return placed::in_slot;
}

/// Copies packets for `queue` into free slots, from mbufs_[at] on, and adds them to `out`. Stops at the first packet
/// that cannot be added. Returns how many it has added.
std::uint32_t receiver::add_copied(rx_queue& queue, completions& out, std::uint32_t at) noexcept
{
    const std::uint64_t before = out.bytes();
    const std::uint32_t added = out.add_copied(&mbufs_[at], count_ - at);
    copied_bytes_.add(out.bytes() - before);
    if (added != 0)
        return added;
    const std::uint32_t bytes = mbufs_[at]->pkt_len;
    std::uint32_t slot = 0;
    if (copy_to_slot(queue, *mbufs_[at], slot) != placed::in_slot)
        return 0;
    out.add(slot, bytes);
    return 1;
}

/// Drops packets from mbufs_[at] on, because no slot of `queue` is free. All packets of the burst are for `queue`.
/// Stops at the first packet that is in a lent slot or not plain. Returns how many it has dropped. Dropping many
/// packets at once costs the engine little time.
std::uint32_t receiver::turn_away(rx_queue& queue, std::uint32_t at) noexcept
{
    const lent_slots lent = queue.lent();
    std::uint64_t bytes = 0;
    std::uint32_t end = at;
    for (; end < count_ && lent.is_plain(*mbufs_[end]) && !lent.contains(mbufs_[end]); ++end)
        bytes += mbufs_[end]->pkt_len;
    rte_pktmbuf_free_bulk(&mbufs_[at], end - at);
    queue.out_of_buffer.add(end - at);
    dropped_[static_cast<std::size_t>(drop_reason::out_of_buffer)].add(end - at);
    steering_.count_all(end - at, bytes);
    received_bytes_.add(bytes);
    return end - at;
}

/// Receive step 3, short way: delivers packets without examining them, while one queue gets all packets and verifies no
/// checksum. Stops at the first packet that needs the long way, take().
void receiver::deliver_plain()
{
    rx_queue* queue = next_ < count_ && !decided_ ? taker_of_all() : nullptr;
    if (!queue || !queue->takes_plain())
        return;
    const lent_slots lent = queue->lent();
    const weftio_cqe model = queue->model({.real_time = burst_real_time_, .hds_ip_ext = WEFTIO_CQE_L2_OK});
    completions out(*queue, model);
    std::uint32_t at = next_;
    while (at < count_ && lent.is_plain(*mbufs_[at])) {
        std::uint32_t added = out.add_filled(&mbufs_[at], count_ - at);
        if (added == 0)
            added = add_copied(*queue, out, at);
        if (added == 0 && queue->stopped())
            break; // it has just lost its memory
        if (added == 0 && !hold_ && !queue->has_room())
            added = turn_away(*queue, at);
        if (added == 0)
            break;
        at += added;
    }
    next_ = static_cast<std::uint16_t>(at);
    steering_.count_all(out.count(), out.bytes());
    delivered_.add(out.published());
    received_bytes_.add(out.bytes());
}

/// Receive step 3, long way: steers the next packet, and delivers, drops or hands it over.
receiver::fate receiver::take(rte_mbuf& mbuf)
{
    if (!decided_)
        steer(mbuf);
    const std::uint32_t number = decision_.target.queue;
    const bool is_elsewhere = number < elsewhere_.size() && elsewhere_[number].inbox;
    const fate result =
        is_elsewhere ? hand_over(mbuf) : deliver_or_drop(mbuf, {decision_, headers_[next_], burst_real_time_});
    if (result == fate::waits)
        return result;
    ++next_;
    decided_ = false;
    return result;
}

/// Delivers or drops a packet that has been steered.
receiver::fate receiver::deliver_or_drop(rte_mbuf& mbuf, const arrival& arrival)
{
    const std::uint32_t bytes = mbuf.pkt_len;
    const drop_reason reason = arrival.where.dropped() ? arrival.where.reason : deliver(mbuf, arrival);
    if (reason == drop_reason::out_of_buffer && hold_)
        return fate::waits;
    if (reason == drop_reason::out_of_buffer)
        queues_[arrival.where.target.queue]->out_of_buffer.add(1);
    if (reason == not_dropped)
        received_bytes_.add(bytes);
    else
        drop(mbuf, reason);
    return fate::done;
}

void receiver::drop(rte_mbuf& mbuf, drop_reason reason)
{
    received_bytes_.add(mbuf.pkt_len);
    dropped_[static_cast<std::size_t>(reason)].add(1);
    rte_pktmbuf_free(&mbuf);
}

/// Receive step 3 for a queue at another engine: puts the packet into the inbox of that engine. While the inbox is
/// full, the packet waits, or is dropped when `hold_` is false.
receiver::fate receiver::hand_over(rte_mbuf& mbuf)
{
    const queue_elsewhere& to = elsewhere_[decision_.target.queue];
    rte_mbuf* given = to.inbox->has_room() ? to_hand_over(mbuf) : nullptr;
    const std::uint32_t copied = given && given != &mbuf ? given->pkt_len : 0;
    if (given && to.inbox->put({given, burst_real_time_, decision_, headers_[next_]})) {
        copied_bytes_.add(copied);
        if (copied != 0)
            rte_pktmbuf_free(&mbuf);
        return fate::done;
    }
    if (copied != 0)
        rte_pktmbuf_free(given);
    if (hold_)
        return fate::waits;
    to.queue->turned_away.fetch_add(1, std::memory_order_relaxed);
    drop(mbuf, drop_reason::out_of_buffer);
    return fate::done;
}

rte_mbuf* receiver::to_hand_over(rte_mbuf& mbuf) const noexcept
{
    return pool_ && mbuf.pool == pool_->mempool() ? rte_pktmbuf_copy(&mbuf, pool_->own(), 0, UINT32_MAX) : &mbuf;
}

/// Decides which queue gets the packet. Called once for each packet, so that a packet that waits counts as one hit of
/// its rule.
void receiver::steer(const rte_mbuf& mbuf)
{
    decided_ = true;
    if (mbuf.pkt_len < RTE_ETHER_HDR_LEN) {
        decision_ = {.reason = drop_reason::runt};
        return;
    }
    decision_ = steering_.decide(as_frame(mbuf), &headers_[next_], parsed_);
}

/// Delivers a packet. Returns `not_dropped`, or why the packet must be dropped, or wait.
drop_reason receiver::deliver(rte_mbuf& mbuf, const arrival& arrival)
{
    // The queue may have been closed while the packet waited.
    const std::uint32_t number = arrival.where.target.queue;
    rx_queue* queue = number < queues_.size() ? queues_[number].get() : nullptr;
    if (!queue || queue->stopped())
        return drop_reason::queue_closed;
    if (!queue->fits(mbuf.pkt_len)) {
        log_too_long(*queue, mbuf.pkt_len);
        queue->too_long.add(1);
        return drop_reason::too_long;
    }
    switch (finish(*queue, mbuf, arrival)) {
        case placed::in_slot: return not_dropped;
        case placed::no_slot: return drop_reason::out_of_buffer;
        case placed::memory_gone: break;
    }
    return drop_reason::queue_closed;
}

/// Zeroes the bytes after the packet that the kernel wants zeroed, verifies checksums, and completes `facts`. Returns
/// false when memory of the slot has gone.
bool receiver::inspect_packet(const rx_queue& queue, std::uint32_t slot, std::uint32_t bytes, const arrival& arrival,
                              std::optional<std::uint16_t> tci, rx_facts& facts) noexcept
{
    const bool verify = queue.ring().verify_checksums, zero = queue.ring().zeroed_bytes != 0;
    const std::span<const std::uint8_t> frame{reinterpret_cast<const std::uint8_t*>(queue.slot(slot)), bytes};
    auto touch = [&](core::touched& there) {
        there.only(frame.data(), bytes + queue.ring().zeroed_bytes);
        if (zero)
            queue.zero_behind(slot, bytes);
        if (!verify)
            return;
        if (!arrival.where.parsed)
            arrival.headers = net::parse(frame, tci);
        const auto verdict = net::verify_checksums(frame, arrival.headers);
        facts.hds_ip_ext |= static_cast<std::uint8_t>((verdict.l3_good ? WEFTIO_CQE_L3_OK : 0) |
                                                      (verdict.l4_good ? WEFTIO_CQE_L4_OK : 0));
    };
    if ((verify || zero) && !core::guarded(touch))
        return false;
    if (arrival.where.parsed || verify)
        facts.l4_hdr_type_etc = header_types(arrival.headers);
    return true;
}

/// Receive steps 4 and 5 for one packet: puts it into a slot, then writes its completion (docs/formats.md,
/// "Completions").
receiver::placed receiver::finish(rx_queue& queue, rte_mbuf& mbuf, const arrival& arrival)
{
    rx_facts facts{.real_time = arrival.real_time,
                   .rss_hash = arrival.where.rss_hash,
                   .has_rss_hash = arrival.where.has_hash,
                   .hds_ip_ext = driver_verdict(mbuf),
                   .l4_hdr_type_etc = 0,
                   .vlan_tci = 0};
    if (mbuf.ol_flags & timestamp_flag_)
        facts.real_time =
            weftio_real_time_from_ns(utc_ns(*RTE_MBUF_DYNFIELD(&mbuf, timestamp_offset_, const rte_mbuf_timestamp_t*)));
    const auto tci = stripped_tci(mbuf);
    std::uint32_t slot = 0, bytes = mbuf.pkt_len;
    if (const placed found = put_in_slot(queue, mbuf, slot); found != placed::in_slot)
        return found;
    if (!inspect_packet(queue, slot, bytes, arrival, tci, facts)) { // the mbuf has been freed already
        queue.lose_memory();
        dropped_[static_cast<std::size_t>(drop_reason::queue_closed)].add(1);
        return placed::in_slot;
    }
    if (tci) {
        facts.l4_hdr_type_etc |= WEFTIO_CQE_VLAN_STRIPPED;
        facts.vlan_tci = *tci;
    }
    completions out(queue, queue.model(facts));
    out.add(slot, bytes);
    delivered_.add(out.published());
    return placed::in_slot;
}

void receiver::end_of_capture()
{
    if (dpdk::capture_is_damaged(capture_))
        damaged_.add(1);
    exhausted_.store(true, std::memory_order_release);
}

} // namespace weftio::nic::soft
