#include "nic/soft/rx_queue.hpp"

#include <rte_mbuf.h>

#include <bit>
#include <cstring>

namespace weftio::nic {

bool rx_queue::has_room()
{
    if (free_ != 0)
        return true;
    // Acquire, pairs with the kernel's release: its reads of the slots it gave back are over.
    auto posted = static_cast<std::uint16_t>(weftio_swap32(weftio_load_acquire_sys_u32(ring_.dbrec)));
    auto free = static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(filled_));
    // A kernel may write anything: a record that claims more slots than there are is not believed.
    free_ = free <= ring_.depth ? free : 0;
    return free_ != 0;
}

std::span<std::uint8_t> rx_queue::copy(const rte_mbuf& mbuf)
{
    auto* slot = reinterpret_cast<std::uint8_t*>(ring_.slots) + std::size_t{filled_ & (ring_.depth - 1)} * ring_.stride_bytes;
    auto* end = slot;
    for (const rte_mbuf* segment = &mbuf; segment; segment = segment->next) {
        std::memcpy(end, rte_pktmbuf_mtod(segment, const std::uint8_t*), segment->data_len);
        end += segment->data_len;
    }
    return {slot, end};
}

void rx_queue::complete(std::uint32_t bytes, const rx_facts& facts)
{
    weftio_cqe& cqe = ring_.completions[filled_ & (ring_.depth - 1)];
    cqe.rss_hash_be = weftio_swap32(facts.rss_hash);
    cqe.rss_hash_type = facts.has_rss_hash;
    cqe.hds_ip_ext = facts.hds_ip_ext;
    cqe.l4_hdr_type_etc = facts.l4_hdr_type_etc;
    cqe.vlan_info_be = weftio_swap16(facts.vlan_tci);
    cqe.user_index_be = weftio_swap32(ring_.number);
    cqe.byte_count_be = weftio_swap32(bytes);
    cqe.timestamp_be = weftio_swap64(weftio_real_time_from_ns(facts.timestamp_ns));

    auto pass = filled_ >> std::countr_zero(ring_.depth);
    auto publication = weftio_cqe_publication(filled_, WEFTIO_CQE_OPCODE_RESPONDER_SEND, pass);
    // Release: payload and bytes 0..59 first.
    weftio_store_release_sys_u32(&cqe.publication, publication);
    ++filled_;
    --free_;
    delivered.add(1);
    delivered_bytes.add(bytes);
}

void rx_queue::stop()
{
    if (stopped_)
        return;
    stopped_ = true;
    free_ = 0; // count anew: the kernel may have posted more
    has_room();
    flushed.add(free_);
}

void rx_queue::restart(const rx_ring& ring)
{
    auto number = ring_.number;
    ring_ = ring;
    ring_.number = number;
    filled_ = free_ = 0;
    stopped_ = false;
}

} // namespace weftio::nic
