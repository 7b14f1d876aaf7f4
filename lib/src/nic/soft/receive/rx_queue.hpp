// A receive queue as the NIC sees it: slots to fill, completions to write, a doorbell record to believe.
#pragma once

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_vect.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "core/counter.hpp"
#include "nic/backend.hpp"
#include "nic/soft/receive/free_slots.hpp"
#include "nic/soft/receive/staging.hpp"
#include "weftio/device/queue/completion.h"

struct rte_mempool;

namespace weftio::nic {

/// What the engine knows about a packet besides its bytes.
struct rx_facts {
    std::uint64_t real_time = 0; ///< of its arrival, as in the completion
    std::uint32_t rss_hash = 0;
    bool has_rss_hash = false;
    std::uint8_t hds_ip_ext = 0;      ///< as in the completion
    std::uint8_t l4_hdr_type_etc = 0; ///< as in the completion
    std::uint16_t vlan_tci = 0;
};

/// The mbufs that stand for the slots of a queue, one each, side by side.
struct rx_lender {
    const rte_mbuf* headers = nullptr;
    std::uint32_t depth = 0;         ///< 0: it lends nothing
    std::uint32_t longest_bytes = 0; ///< as rx_queue::fits()

    /// The slot of an mbuf of this queue; `depth` or more for any other mbuf.
    std::size_t slot(const rte_mbuf* mbuf) const
    {
        return (reinterpret_cast<std::uintptr_t>(mbuf) - reinterpret_cast<std::uintptr_t>(headers)) / sizeof(rte_mbuf);
    }
    bool has_lent(const rte_mbuf* mbuf) const { return slot(mbuf) < depth; }
    /// Whether the packet lies where a kernel looks for it.
    bool has_filled(const rte_mbuf& mbuf) const
    {
        return has_lent(&mbuf) && mbuf.nb_segs == 1 && mbuf.data_off == rx_ring::headroom_bytes;
    }
    /// Whether the packet lies in one piece outside the slots.
    bool is_elsewhere(const rte_mbuf& mbuf) const { return !has_lent(&mbuf) && mbuf.nb_segs == 1; }
    /// Whether the driver says nothing of the packet but its length, and that is one of a frame that fits a slot.
    bool is_plain(const rte_mbuf& mbuf) const
    {
        return mbuf.ol_flags == 0 && mbuf.pkt_len - RTE_ETHER_HDR_LEN <= longest_bytes - RTE_ETHER_HDR_LEN;
    }
};

/// Owned and driven by one engine. Counters may be read from anywhere.
///
/// Slots are filled in any order: a completion names its slot, and the kernel gives completions back in order.
class rx_queue {
 public:
    explicit rx_queue(const rx_ring& ring);
    rx_queue(const rx_queue&) = delete;
    rx_queue& operator=(const rx_queue&) = delete;
    ~rx_queue();

    /// Whether a packet of so many bytes fits a slot and is whole.
    bool fits(std::uint32_t bytes) const { return bytes <= longest_bytes_; }
    /// Whether a slot is free. Reads the doorbell record only when none is known to be.
    bool has_room() { return free_.count() != 0 || reclaim() != 0; }
    /// Reads the doorbell record. Returns how many slots are free.
    std::uint32_t reclaim();
    /// Reads the doorbell record when fewer than `wanted` are known to be free. Returns how many are.
    std::uint32_t free_at_least(std::uint32_t wanted) { return free_.count() < wanted ? reclaim() : free_.count(); }
    /// Takes a free slot, which nobody else looks at before its completion. @pre has_room()
    std::uint32_t take_slot()
    {
        const std::uint16_t slot = *free_.next();
        free_.take(1);
        return slot;
    }
    std::byte* slot(std::uint32_t number) const { return ring_.slots + std::size_t{number} * ring_.stride_bytes; }
    /// Copies a packet into a slot. @pre fits()
    std::span<std::uint8_t> copy(std::uint32_t slot, const rte_mbuf& mbuf);
    /// A completion with these facts, of no packet yet.
    weftio_cqe model(const rx_facts& facts) const;
    /// Whether packets are copied on.
    bool lands() const { return staging_ != nullptr; }
    /// Where they are: publishes what has landed. Returns how many. Called every turn. @pre lands()
    unsigned land()
    {
        const staging::landing landed = staging_->turn();
        delivered.add(landed.packets);
        delivered_bytes.add(landed.bytes);
        return landed.packets;
    }
    /// Packets that are being copied on: neither delivered nor lost.
    std::uint32_t staged() const { return staging_ ? staging_->held() : 0; }

    /// Makes an mbuf of each slot, of that pool, so that a driver can fill slots itself. Returns false without memory
    /// for them.
    bool make_headers(rte_mempool* pool) noexcept;
    /// Hands out free slots as mbufs, at most `most`. Returns how many.
    unsigned lend(rte_mbuf** mbufs, unsigned most);
    /// Takes a slot back unfilled.
    void take_back(const rte_mbuf* mbuf)
    {
        const auto slot = static_cast<std::uint16_t>(lender().slot(mbuf));
        free_.put(&slot, 1);
    }
    /// Tells its own mbufs from others.
    rx_lender lender() const { return {headers_.get(), headers_ ? ring_.depth : 0, longest_bytes_}; }

    const rx_ring& ring() const { return ring_; }
    /// The kernel is given up: nothing is delivered any more, what was posted and is not filled is flushed.
    void stop();
    bool stopped() const { return stopped_; }
    /// What a ring needs whose packets are copied on; nullptr for others. Throws std::bad_alloc.
    static std::unique_ptr<staging> staging_for(const rx_ring& ring);
    /// Starts again at index 0, in a ring that has been made anew and is as deep. @pre no driver has a slot
    /// @param staging  for that ring
    void restart(const rx_ring& ring, std::unique_ptr<nic::staging> staging) noexcept;

    /// What a kernel posted is delivered, free, or, once the queue was stopped, flushed.
    detail::counter delivered, delivered_bytes, out_of_buffer, too_long, flushed;
    /// Packets that found the inbox of the queue's engine full, counted by those that received them: out of buffer too.
    std::atomic<std::uint64_t> turned_away{0};
    std::uint64_t all_out_of_buffer() const noexcept
    {
        return out_of_buffer.value() + turned_away.load(std::memory_order_relaxed);
    }

 private:
    friend class completions;
    void begin() noexcept;

    rx_ring ring_;
    std::uint32_t longest_bytes_ = 0;
    std::uint32_t filled_ = 0; ///< free-running index of the next completion
    std::uint32_t posted_ = 0; ///< entries that the record was seen to claim, free-running
    free_slots free_;
    std::vector<std::uint16_t>
        slot_of_; ///< by index: the slot that the entry posts, then the one that the completion names
    std::unique_ptr<rte_mbuf[]> headers_; ///< by slot; the kernel cannot reach them
    std::unique_ptr<nic::staging> staging_;
    bool stopped_ = false;
};

/// Publishes the next completions of a queue, all with the same facts, and counts them at its end. Where packets are
/// copied on, land() publishes.
class completions {
 public:
    /// @param model  what they have in common
    completions(rx_queue& queue, const weftio_cqe& model)
        : queue_(queue), model_(model), cqes_(queue.ring_.completions), slot_of_(queue.slot_of_.data()),
          mask_(queue.ring_.depth - 1), log_depth_(static_cast<std::uint32_t>(std::countr_zero(queue.ring_.depth))),
          first_(queue.filled_), index_(first_), staging_(queue.staging_.get())
    {}
    completions(const completions&) = delete;
    completions& operator=(const completions&) = delete;
    ~completions()
    {
        if (staging_) // land() counts
            return;
        queue_.delivered.add(count());
        queue_.delivered_bytes.add(bytes_);
    }

    /// The packet lies in that slot.
    void add(std::uint32_t slot, std::uint32_t bytes) noexcept
    {
        weftio_cqe& cqe = cqes_[index_ & mask_];
        fill(cqe, model_, bytes);
        slot_of_[index_ & mask_] = static_cast<std::uint16_t>(slot);
        const std::uint32_t publication =
            weftio_cqe_publication(slot, WEFTIO_CQE_OPCODE_RESPONDER_SEND, index_ >> log_depth_);
        if (staging_)
            publish<true>(cqe, publication, slot, bytes);
        else
            publish<false>(cqe, publication, slot, bytes);
        bytes_ += bytes;
        queue_.filled_ = ++index_;
    }
    /// Adds packets, as far as it goes and at most to the end of the ring, that lie in slots of the queue and are
    /// plain. Returns how many.
    std::uint32_t add_filled(rte_mbuf* const* mbufs, std::uint32_t count) noexcept;
    /// The same for plain packets that lie elsewhere, in one piece each, while slots are free, some at a time: copies
    /// them there and frees their mbufs, which `mbufs` names no more.
    std::uint32_t add_copied(rte_mbuf** mbufs, std::uint32_t count) noexcept;
    std::uint32_t count() const { return index_ - first_; }
    /// How many of them a kernel can see by now.
    std::uint32_t published() const { return staging_ ? 0 : count(); }
    std::uint64_t bytes() const { return bytes_; }

 private:
    template <bool Staged, class Next>
    std::uint32_t add_plain(std::uint32_t count, Next&& next) noexcept;
    /// Bytes 0..55 of a completion, in registers: from memory they would be read again for each.
    struct common_part {
        rte_v128u64_t first, second, third;
        std::uint64_t rest;
        static_assert(offsetof(weftio_cqe, sop_drop_qpn_be) == 56);

        explicit common_part(const weftio_cqe& model) noexcept
        {
            const auto* from = reinterpret_cast<const std::byte*>(&model);
            std::memcpy(&first, from, 16);
            std::memcpy(&second, from + 16, 16);
            std::memcpy(&third, from + 32, 16);
            std::memcpy(&rest, from + 48, 8);
        }
    };
    static void fill(weftio_cqe& cqe, const common_part& model, std::uint32_t bytes) noexcept
    {
        // One half of the line after the other, which the compiler may not mix: where stores to both alternate, a line
        // goes to another core a third slower (measured on EPYC).
        auto* to = reinterpret_cast<std::byte*>(&cqe);
        std::memcpy(to, &model.first, 16);
        std::memcpy(to + 16, &model.second, 16);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        std::memcpy(to + 32, &model.third, 16);
        std::memcpy(to + 48, &model.rest, 8);
        cqe.byte_count_be = weftio_swap32(bytes);
    }
    template <bool Staged>
    void publish(weftio_cqe& cqe, std::uint32_t publication, std::uint32_t slot, std::uint32_t bytes) noexcept
    {
        if constexpr (Staged)
            staging_->add(&cqe.publication, publication, slot, bytes);
        else // Release: payload and bytes 0..59 first.
            weftio_store_release_sys_u32(&cqe.publication, publication);
    }

    rx_queue& queue_;
    const common_part model_;
    weftio_cqe* const cqes_;
    std::uint16_t* const slot_of_;
    const std::uint32_t mask_, log_depth_, first_;
    std::uint32_t index_;
    std::uint64_t bytes_ = 0;
    staging* const staging_;
};

} // namespace weftio::nic
