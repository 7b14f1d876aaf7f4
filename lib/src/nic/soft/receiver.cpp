#include "nic/soft/receiver.hpp"

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include "core/clock.hpp"
#include "nic/capture.hpp"
#include "nic/soft/checksum.hpp"

namespace weftio::nic {

namespace {

std::optional<std::uint16_t> stripped_tci(const rte_mbuf& mbuf)
{
    if (mbuf.ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
        return mbuf.vlan_tci;
    return std::nullopt;
}

std::uint8_t header_types(const packet_headers& headers)
{
    unsigned types = headers.l3 == l3_kind::ipv6 ? WEFTIO_CQE_L3_IPV6 : headers.l3 == l3_kind::ipv4 ? WEFTIO_CQE_L3_IPV4 : 0;
    types |= headers.l4 == l4_kind::udp ? WEFTIO_CQE_L4_UDP : headers.l4 == l4_kind::tcp ? WEFTIO_CQE_L4_TCP : 0;
    types |= headers.fragment ? WEFTIO_CQE_FRAGMENT : 0;
    return static_cast<std::uint8_t>(types);
}

/// A driver's receive time as UTC nanoseconds. DPDK leaves the unit to the driver, and net_pcap up to 22.11 counts
/// microseconds: a number that as nanoseconds would be before 1973 is taken for these.
std::uint64_t utc_ns(std::uint64_t driver_time)
{
    constexpr std::uint64_t year_1973_ns = 100'000'000'000'000'000;
    return driver_time < year_1973_ns ? driver_time * 1000 : driver_time;
}

/// What the driver found good already.
std::uint8_t driver_verdict(const rte_mbuf& mbuf)
{
    unsigned ok = WEFTIO_CQE_L2_OK;
    if ((mbuf.ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_GOOD)
        ok |= WEFTIO_CQE_L3_OK;
    if ((mbuf.ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD)
        ok |= WEFTIO_CQE_L4_OK;
    return static_cast<std::uint8_t>(ok);
}

} // namespace

receiver::receiver(std::uint16_t port, bool hold, std::string capture) : port_(port), hold_(hold), capture_(std::move(capture))
{
    timestamp_offset_ = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
    int flag = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, nullptr);
    timestamp_flag_ = flag >= 0 && timestamp_offset_ >= 0 ? std::uint64_t{1} << flag : 0;
}

receiver::~receiver()
{
    while (next_ < count_)
        rte_pktmbuf_free(mbufs_[next_++]);
}

unsigned receiver::turn()
{
    if (steering_.size() == 0)
        return 0;
    if (next_ == count_)
        fill_burst();
    std::uint16_t before = next_;
    while (next_ < count_ && take(*mbufs_[next_])) {
        rte_pktmbuf_free(mbufs_[next_]);
        ++next_;
        decided_ = false;
    }
    return static_cast<unsigned>(next_ - before);
}

void receiver::fill_burst()
{
    next_ = 0;
    count_ = rte_eth_rx_burst(port_, 0, mbufs_.data(), burst);
    if (count_ == 0) {
        if (!capture_.empty() && !exhausted())
            end_of_capture();
        return;
    }
    burst_time_ns_ = detail::utc_now_ns();
    std::uint64_t bytes = 0;
    for (std::uint16_t at = 0; at < count_; ++at)
        bytes += mbufs_[at]->pkt_len;
    received_.add(count_);
    received_bytes_.add(bytes);
}

bool receiver::take(rte_mbuf& mbuf)
{
    if (!decided_ && !steer(mbuf))
        return true;
    return deliver(mbuf);
}

/// Decides once for each packet, so that a packet that waits is one hit of its rule. Returns whether a queue shall have it.
bool receiver::steer(rte_mbuf& mbuf)
{
    if (mbuf.pkt_len < RTE_ETHER_HDR_LEN)
        return !drop(drop_reason::runt);
    received_frame frame{.start = {rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len},
                         .bytes = mbuf.pkt_len,
                         .stripped_tci = stripped_tci(mbuf)};
    decision_ = steering_.decide(frame, &headers_);
    if (decision_.dropped())
        return !drop(decision_.reason);
    decided_ = true;
    return true;
}

bool receiver::deliver(rte_mbuf& mbuf)
{
    // The queue may have gone while the packet waited for it.
    rx_queue* queue = decision_.target.slot < queues_.size() ? queues_[decision_.target.slot].get() : nullptr;
    if (!queue || queue->stopped())
        return drop(drop_reason::queue_closed);
    if (!queue->fits(mbuf.pkt_len)) {
        queue->too_long.add(1);
        return drop(drop_reason::too_long);
    }
    if (!queue->has_room()) {
        if (hold_)
            return false;
        queue->out_of_buffer.add(1);
        return drop(drop_reason::out_of_buffer);
    }
    finish(*queue, mbuf);
    return true;
}

void receiver::finish(rx_queue& queue, const rte_mbuf& mbuf)
{
    rx_facts facts{.timestamp_ns = burst_time_ns_,
                   .rss_hash = decision_.rss_hash,
                   .has_rss_hash = decision_.has_hash,
                   .hds_ip_ext = driver_verdict(mbuf),
                   .l4_hdr_type_etc = 0,
                   .vlan_tci = 0};
    if (mbuf.ol_flags & timestamp_flag_)
        facts.timestamp_ns = utc_ns(*RTE_MBUF_DYNFIELD(&mbuf, timestamp_offset_, const rte_mbuf_timestamp_t*));
    auto tci = stripped_tci(mbuf);
    std::span<std::uint8_t> slot = queue.copy(mbuf);
    if (!decision_.parsed && queue.ring().verify_checksums)
        headers_ = parse(slot, tci);
    if (decision_.parsed || queue.ring().verify_checksums)
        facts.l4_hdr_type_etc = header_types(headers_);
    if (queue.ring().verify_checksums) {
        auto verdict = verify_checksums(slot, headers_);
        facts.hds_ip_ext |= static_cast<std::uint8_t>((verdict.l3_good ? WEFTIO_CQE_L3_OK : 0) | (verdict.l4_good ? WEFTIO_CQE_L4_OK : 0));
    }
    if (tci) {
        facts.l4_hdr_type_etc |= WEFTIO_CQE_VLAN_STRIPPED;
        facts.vlan_tci = *tci;
    }
    queue.complete(mbuf.pkt_len, facts);
    delivered_.add(1);
    copied_bytes_.add(mbuf.pkt_len);
}

bool receiver::drop(drop_reason reason)
{
    dropped_[static_cast<std::size_t>(reason)].add(1);
    return true;
}

void receiver::end_of_capture()
{
    if (capture_is_damaged(capture_))
        damaged_.add(1);
    exhausted_.store(true, std::memory_order_release);
}

std::uint32_t receiver::add(rx_ring ring)
{
    std::uint32_t number = 0;
    while (number < queues_.size() && queues_[number])
        ++number;
    if (number == queues_.size())
        queues_.emplace_back();
    ring.number = number;
    queues_[number] = std::make_unique<rx_queue>(ring);
    return number;
}

void receiver::remove(std::uint32_t number) noexcept
{
    steering_.forget_queue(number);
    if (decided_ && decision_.target.slot == number)
        decision_.target.slot = rx_target::closed;
    queues_[number].reset();
}

void receiver::count(port_counters& counters) const
{
    counters.delivered = delivered_.value();
    for (std::size_t reason = 0; reason < dropped_.size(); ++reason)
        counters.dropped[reason] = dropped_[reason].value();
    counters.received = received_.value();
    counters.received_bytes = received_bytes_.value();
    counters.held = counters.received - counters.delivered - counters.dropped_total();
    counters.copied_bytes = copied_bytes_.value();
    counters.capture_damaged = damaged_.value();
}

} // namespace weftio::nic
