#include "nic/soft/receive/rx_queue.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "core/guarded.hpp"
#include "core/log.hpp"
#include "core/prefetch.hpp"
#include "nic/soft/send/send_headers.hpp"

namespace weftio::nic::soft {

static_assert(rx_ring::headroom_bytes == RTE_PKTMBUF_HEADROOM);

namespace {

/// Copies a frame; the two ranges may overlap, because a kernel may by mistake send a frame from the slot that it is
/// copied to. Frames of 32 to 64 bytes, the most frequent at full rate, are copied without a call: the whole frame is
/// read, in two halves that may overlap, before any of it is written.
void copy_frame(std::byte* to, const std::byte* from, std::uint32_t bytes) noexcept
{
    using piece = rte_v128u64_t; // GCC would also store an array of bytes on the stack
    constexpr std::uint32_t half = 2 * sizeof(piece);
    if (bytes < half || bytes > 2 * half) {
        std::memmove(to, from, bytes);
        return;
    }
    std::byte* const to_end = to + bytes;
    const std::byte* const from_end = from + bytes;
    piece a, b, c, d;
    std::memcpy(&a, from, sizeof a);
    std::memcpy(&b, from + sizeof a, sizeof b);
    std::memcpy(&c, from_end - half, sizeof c);
    std::memcpy(&d, from_end - sizeof d, sizeof d);
    std::memcpy(to, &a, sizeof a);
    std::memcpy(to + sizeof a, &b, sizeof b);
    std::memcpy(to_end - half, &c, sizeof c);
    std::memcpy(to_end - sizeof d, &d, sizeof d);
}

} // namespace

rx_queue::rx_queue(const rx_ring& ring)
    : ring_(ring), free_(ring.depth), slot_of_(ring.depth), staging_(staging_for(ring))
{
    begin();
}

rx_queue::~rx_queue() = default;

std::unique_ptr<staging> rx_queue::staging_for(const rx_ring& ring)
{
    if (!ring.staged.copies)
        return nullptr;
    return std::make_unique<staging>(ring);
}

/// Starts at index 0. The first entries of the kernel post the slots in order.
void rx_queue::begin() noexcept
{
    longest_bytes_ = std::min(ring_.slot_bytes, ring_.cut_bytes - 1);
    filled_ = posted_ = 0;
    free_.clear();
    stopped_ = false;
    std::iota(slot_of_.begin(), slot_of_.end(), std::uint16_t{0});
}

std::uint32_t rx_queue::reclaim()
{
    // Acquire, pairs with the release in weftio_dev_eth_rxq_release: the kernel has finished reading the slots that it
    // released.
    auto record = static_cast<std::uint16_t>(weftio_swap32(weftio_load_acquire_sys_u32(ring_.dbrec)));
    auto more = static_cast<std::uint16_t>(record - static_cast<std::uint16_t>(posted_));
    // A kernel may write any value. A record that claims more slots than the ring has is ignored.
    if (more == 0 || stopped_ || posted_ - filled_ + more > ring_.depth)
        return free_.count();
    const std::uint32_t first = posted_ & (ring_.depth - 1),
                        to_the_end = std::min<std::uint32_t>(more, ring_.depth - first);
    const std::uint16_t* const slots = slot_of_.data();
    // In ring order: neighboring slots are then filled in order, and a copy engine can copy them together.
    if (ring_.consecutive) {
        free_.put_behind(slots + first, to_the_end);
        free_.put_behind(slots, more - to_the_end);
    } else {
        free_.put(slots, more - to_the_end);
        free_.put(slots + first, to_the_end);
    }
    posted_ += more;
    return free_.count();
}

void rx_queue::fetch_completions(std::uint32_t most) const noexcept
{
    const std::uint32_t count = std::min(most, posted_ - filled_);
    for (std::uint32_t at = 0; at < count; ++at)
        core::fetch_to_write(&ring_.completions[(filled_ + at) & (ring_.depth - 1)]);
}

bool rx_queue::copy(std::uint32_t slot, const rte_mbuf& mbuf)
{
    return core::guarded([&](core::touched& there) {
        std::byte* end = this->slot(slot);
        there.only(end, ring_.stride_bytes);
        for (const rte_mbuf* segment = &mbuf; segment; segment = segment->next) {
            // memmove, because the packet may be in this slot.
            std::memmove(end, rte_pktmbuf_mtod(segment, const std::byte*), segment->data_len);
            end += segment->data_len;
        }
    });
}

void rx_queue::lose_memory() noexcept
{
    stop();
    core::log_or_lose(log_level::error, [&] {
        return fmt::format(
            "weftio: eth_rxq {}: the memory of its slots cannot be accessed any more: it was unmapped or "
            "protected (mprotect), or its file was truncated; the queue stopped and drops its packets",
            ring_.number);
    });
}

weftio_cqe rx_queue::model(const rx_facts& facts) const
{
    weftio_cqe model{};
    model.rss_hash_be = weftio_swap32(facts.rss_hash);
    model.rss_hash_type = facts.has_rss_hash;
    model.hds_ip_ext = facts.hds_ip_ext;
    model.l4_hdr_type_etc = facts.l4_hdr_type_etc;
    model.vlan_info_be = weftio_swap16(facts.vlan_tci);
    model.user_index_be = weftio_swap32(ring_.number);
    model.timestamp_be = weftio_swap64(facts.real_time);
    return model;
}

bool rx_queue::make_mbufs(rte_mempool* pool) noexcept
{
    if (!mbufs_)
        mbufs_.reset(new (std::nothrow) rte_mbuf[ring_.depth]{});
    if (!mbufs_)
        return false;
    for (std::uint32_t number = 0; number < ring_.depth; ++number) {
        rte_mbuf& mbuf = mbufs_[number];
        mbuf.pool = pool;
        mbuf.buf_addr = slot(number) - rx_ring::headroom_bytes;
        mbuf.buf_iova = reinterpret_cast<rte_iova_t>(mbuf.buf_addr);
        mbuf.buf_len = static_cast<std::uint16_t>(rx_ring::headroom_bytes + ring_.slot_bytes);
        mbuf.nb_segs = 1;
        mbuf.port = RTE_MBUF_PORT_INVALID;
        rte_mbuf_refcnt_set(&mbuf, 1);
    }
    return true;
}

unsigned rx_queue::lend(rte_mbuf** mbufs, unsigned most)
{
    const std::uint32_t lent = std::min(most, free_at_least(most));
    const std::uint16_t* const free = free_.next();
    rte_mbuf* const by_slot = mbufs_.get();
    for (std::uint32_t at = 0; at < lent; ++at)
        mbufs[at] = by_slot + free[at];
    free_.take(lent);
    return lent;
}

/// Adds packets while `next(at, slot, bytes)` returns true and sets `slot` and `bytes`, at most to the end of the ring.
/// Returns how many it has added.
template <bool Staged, class Next>
std::uint32_t completions::add_plain(std::uint32_t count, Next&& next) noexcept
{
    // A copy in registers: the compiler must assume that the stores below may change model_.
    const common_part model = model_;
    const std::uint32_t first = index_ & mask_, most = std::min(count, mask_ + 1 - first);
    const std::uint32_t of_slot_0 = weftio_cqe_publication(0, WEFTIO_CQE_OPCODE_RESPONDER_SEND, index_ >> log_depth_);
    weftio_cqe* const cqes = &cqes_[first];
    std::uint16_t* const slot_of = &slot_of_[first];
    std::uint64_t bytes = 0;
    std::uint32_t added = 0, length = 0;
    for (std::uint16_t slot = 0; added < most && next(added, slot, length); ++added) {
        fill(cqes[added], model, length);
        slot_of[added] = slot;
        publish<Staged>(cqes[added], of_slot_0 | weftio_swap16(slot), slot, length);
        bytes += length;
    }
    bytes_ += bytes;
    queue_.filled_ = index_ += added;
    return added;
}

std::uint32_t completions::add_filled(rte_mbuf* const* mbufs, std::uint32_t count) noexcept
{
    auto next = [mbufs, lent = queue_.lent()](std::uint32_t at, std::uint16_t& slot, std::uint32_t& bytes) {
        const rte_mbuf& mbuf = *mbufs[at];
        slot = static_cast<std::uint16_t>(lent.slot(&mbuf));
        bytes = mbuf.pkt_len;
        return lent.is_plain(mbuf) && lent.is_in_place(mbuf);
    };
    return staging_ ? add_plain<true>(count, next) : add_plain<false>(count, next);
}

std::uint32_t completions::add_copied(rte_mbuf** mbufs, std::uint32_t count) noexcept
{
    constexpr std::uint32_t burst = 64;
    const std::uint32_t wanted = std::min({count, burst, mask_ + 1 - (index_ & mask_)});
    const std::uint32_t most = std::min(wanted, queue_.free_at_least(wanted));
    const std::uint16_t* const free = queue_.free_.next();
    std::byte* const slots = queue_.ring_.slots;
    const std::size_t stride = queue_.ring_.stride_bytes;
    const lent_slots lent = queue_.lent();
    const own_frames own;
    std::array<std::uint32_t, burst> lengths;
    // One loop copies and a second loop writes completions: one loop for both took 3 ns more per packet. If a slot's
    // memory has gone, the volatile variables hold the state after the last complete packet.
    volatile std::uint32_t all_copied = 0, all_others = 0;
    const bool whole = core::guarded([&](core::touched& there) {
        there.only(slots, queue_.ring_.depth * stride);
        std::uint32_t copied = 0, others = 0;
        for (; copied < most && lent.is_plain(*mbufs[copied]) && lent.is_outside(*mbufs[copied]);) {
            rte_mbuf& mbuf = *mbufs[copied];
            lengths[copied] = mbuf.pkt_len;
            copy_frame(slots + free[copied] * stride, rte_pktmbuf_mtod(&mbuf, const std::byte*), lengths[copied]);
            std::atomic_signal_fence(std::memory_order_seq_cst);
            if (!own.give_back(mbuf))
                mbufs[others++] = &mbuf;
            all_others = others;
            all_copied = ++copied;
        }
    });
    const std::uint32_t copied = all_copied, others = all_others;
    auto next = [free, &lengths](std::uint32_t at, std::uint16_t& slot, std::uint32_t& bytes) {
        slot = free[at];
        bytes = lengths[at];
        return true;
    };
    staging_ ? add_plain<true>(copied, next) : add_plain<false>(copied, next);
    queue_.free_.take(copied);
    rte_pktmbuf_free_bulk(mbufs, others);
    if (!whole)
        queue_.lose_memory();
    return copied;
}

void rx_queue::stop()
{
    if (stopped_)
        return;
    reclaim(); // the kernel may have posted more slots since the last read
    stopped_ = true;
    free_.clear();
    flushed.add(posted_ - filled_);
}

void rx_queue::restart(const rx_ring& ring, std::unique_ptr<nic::soft::staging> staging) noexcept
{
    auto number = ring_.number;
    ring_ = ring;
    ring_.number = number;
    staging_ = std::move(staging);
    begin();
}

} // namespace weftio::nic::soft
