// A receive queue as the NIC sees it: slots to fill, completions to write, a doorbell record to read.
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
#include "nic/soft/receive/free_slots.hpp"
#include "nic/soft/receive/rx_ring.hpp"
#include "nic/soft/receive/staging.hpp"
#include "weftio/device/queue/completion.h"

struct rte_mempool;

namespace weftio::nic::soft {

/// Data of a packet other than its bytes. All fields but the hash have the format of a completion (docs/formats.md,
/// "Completions").
struct rx_facts {
    std::uint64_t real_time = 0; ///< bytes 48..55: receive time
    std::uint32_t rss_hash = 0;
    bool has_rss_hash = false;
    std::uint8_t hds_ip_ext = 0;      ///< byte 28
    std::uint8_t l4_hdr_type_etc = 0; ///< byte 29
    std::uint16_t vlan_tci = 0;
};

/// Recognizes slots that a queue has lent to a driver, by their mbufs. The queue has one mbuf for each slot, in one
/// array.
struct lent_slots {
    const rte_mbuf* mbufs = nullptr; ///< by slot
    std::uint32_t depth = 0;         ///< 0: the queue lends no slots
    std::uint32_t longest_bytes = 0; ///< longest packet that fits a slot, see rx_queue::fits()

    /// The slot of `mbuf`; `depth` or more when `mbuf` is no lent slot of this queue.
    std::size_t slot(const rte_mbuf* mbuf) const
    {
        return (reinterpret_cast<std::uintptr_t>(mbuf) - reinterpret_cast<std::uintptr_t>(mbufs)) / sizeof(rte_mbuf);
    }
    bool contains(const rte_mbuf* mbuf) const { return slot(mbuf) < depth; }
    /// Whether the packet is in a lent slot, where the kernel reads it: zero copy.
    bool is_in_place(const rte_mbuf& mbuf) const
    {
        return contains(&mbuf) && mbuf.nb_segs == 1 && mbuf.data_off == rx_ring::headroom_bytes;
    }
    /// Whether the packet is in one segment outside the lent slots.
    bool is_outside(const rte_mbuf& mbuf) const { return !contains(&mbuf) && mbuf.nb_segs == 1; }
    /// Whether the driver reports the length of the packet and nothing else, and the length is that of a frame that
    /// fits a slot.
    bool is_plain(const rte_mbuf& mbuf) const
    {
        return mbuf.ol_flags == 0 && mbuf.pkt_len - RTE_ETHER_HDR_LEN <= longest_bytes - RTE_ETHER_HDR_LEN;
    }
};

/// One engine owns and drives the queue. Any thread may read the counters.
///
/// Slots are filled in any order, because a completion names its slot. The kernel releases packets in the order of
/// completions.
class rx_queue {
 public:
    explicit rx_queue(const rx_ring& ring);
    rx_queue(const rx_queue&) = delete;
    rx_queue& operator=(const rx_queue&) = delete;
    ~rx_queue();

    /// Whether a packet of this length fits a slot and was not cut by the driver.
    bool fits(std::uint32_t bytes) const { return bytes <= longest_bytes_; }
    /// Whether a slot is free. Reads the doorbell record only when no slot is known to be free.
    bool has_room() { return free_.count() != 0 || reclaim() != 0; }
    /// Receive step 7: reads the doorbell record (docs/formats.md, "Doorbells") and reclaims the slots that the kernel
    /// has released. Returns how many slots are free.
    std::uint32_t reclaim();
    /// Returns how many slots are free. Reads the doorbell record only when fewer than `wanted` are known to be free.
    std::uint32_t free_at_least(std::uint32_t wanted) { return free_.count() < wanted ? reclaim() : free_.count(); }
    /// Has the cache lines of the next completions fetched, at most `most`, while something else is done: a kernel on
    /// another core has read them last, and one by one they take as long as all other work on a packet.
    void fetch_completions(std::uint32_t most) const noexcept;
    /// Takes a free slot. Neither a driver nor the kernel reads or writes the slot before its completion.
    /// @pre has_room()
    std::uint32_t take_slot()
    {
        const std::uint16_t slot = *free_.next();
        free_.take(1);
        return slot;
    }
    std::byte* slot(std::uint32_t number) const { return ring_.slots + std::size_t{number} * ring_.stride_bytes; }
    /// Receive step 4 with a copy: copies all segments of a packet into a slot. Returns false when memory of the slot
    /// has gone. @pre fits()
    bool copy(std::uint32_t slot, const rte_mbuf& mbuf);
    /// Memory of a slot has gone: stops the queue, and logs it.
    void lose_memory() noexcept;
    /// Zeroes as many bytes after the packet in a slot as the kernel wants.
    void zero_behind(std::uint32_t slot, std::uint32_t bytes) const
    {
        std::memset(this->slot(slot) + bytes, 0, ring_.zeroed_bytes);
    }
    /// Whether packets may be delivered without verification of checksums and without zeroed bytes.
    bool takes_plain() const { return !ring_.verify_checksums && ring_.zeroed_bytes == 0; }
    /// A completion with these facts, to be filled in for packets.
    weftio_cqe model(const rx_facts& facts) const;
    /// Whether the packets of this queue go through staging.
    bool is_staged() const { return staging_ != nullptr; }
    /// Publishes the packets whose copy to the device is complete. Returns how many. Called every turn.
    /// @pre is_staged()
    unsigned deliver_staged()
    {
        const staging::delivery done = staging_->turn();
        delivered.add(done.packets);
        delivered_bytes.add(done.bytes);
        return done.packets;
    }
    /// The number of packets in staging: neither delivered nor lost.
    std::uint32_t staged() const { return staging_ ? staging_->held() : 0; }

    /// Makes the queue a lender: makes an mbuf of `pool` for each slot. Returns false when memory is short.
    bool make_mbufs(rte_mempool* pool) noexcept;
    /// Receive step 2, zero copy: lends at most `most` free slots to the driver, as mbufs. Returns how many.
    unsigned lend(rte_mbuf** mbufs, unsigned most);
    /// Takes back a lent slot that the driver has not used.
    void take_back(const rte_mbuf* mbuf)
    {
        const auto slot = static_cast<std::uint16_t>(lent().slot(mbuf));
        free_.put(&slot, 1);
    }
    /// Recognizes the slots that this queue has lent.
    lent_slots lent() const { return {mbufs_.get(), mbufs_ ? ring_.depth : 0, longest_bytes_}; }

    const rx_ring& ring() const { return ring_; }
    /// Stops the queue: delivers nothing more, and counts posted slots that are not filled as flushed.
    void stop();
    bool stopped() const { return stopped_; }
    /// Makes the staging of a ring; nullptr for a ring without staging. Throws std::bad_alloc.
    static std::unique_ptr<staging> staging_for(const rx_ring& ring);
    /// Starts again at index 0 in a fresh ring of the same depth. @pre no driver has a slot
    /// @param staging  staging of that ring
    void restart(const rx_ring& ring, std::unique_ptr<nic::soft::staging> staging) noexcept;

    /// Every slot that a kernel has posted is delivered, free, or, once the queue is stopped, flushed.
    core::counter delivered, delivered_bytes, out_of_buffer, too_long, flushed;
    /// Packets that found the inbox of this queue's engine full. The engines that received them count them here; they
    /// also count as out of buffer.
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
    std::uint32_t filled_ = 0; ///< index of the next completion, free-running
    std::uint32_t posted_ = 0; ///< entries that the doorbell record has posted, as last read, free-running
    free_slots free_;
    /// By index & (depth - 1): the slot that is free again once the kernel posts this index. Completions write it.
    std::vector<std::uint16_t> slot_of_;
    std::unique_ptr<rte_mbuf[]> mbufs_; ///< of a lender: mbufs by slot, in memory that no kernel can write
    std::unique_ptr<nic::soft::staging> staging_;
    bool stopped_ = false;
};

/// Receive step 5: writes the next completions of a queue, all with the same facts (docs/formats.md, "Completions"),
/// and counts them in the destructor. For a queue with staging, rx_queue::deliver_staged() publishes and counts them.
class completions {
 public:
    /// @param model  the bytes that the completions have in common
    completions(rx_queue& queue, const weftio_cqe& model)
        : queue_(queue), model_(model), cqes_(queue.ring_.completions), slot_of_(queue.slot_of_.data()),
          mask_(queue.ring_.depth - 1), log_depth_(static_cast<std::uint32_t>(std::countr_zero(queue.ring_.depth))),
          first_(queue.filled_), index_(first_), staging_(queue.staging_.get())
    {}
    completions(const completions&) = delete;
    completions& operator=(const completions&) = delete;
    ~completions()
    {
        if (staging_) // rx_queue::deliver_staged() counts
            return;
        queue_.delivered.add(count());
        queue_.delivered_bytes.add(bytes_);
    }

    /// Adds a completion for the packet of `bytes` bytes in `slot`.
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
    /// Adds plain packets that the driver has written into slots (zero copy). Stops at the first other packet and at
    /// the end of the ring. Returns how many it has added.
    std::uint32_t add_filled(rte_mbuf* const* mbufs, std::uint32_t count) noexcept;
    /// Copies plain packets of one segment each into free slots and adds them. Frees their mbufs and overwrites
    /// `mbufs`. Stops at the first other packet, at the end of the ring, when no slot is free, and after 64 packets.
    /// Stops the queue when memory of a slot has gone.
    /// Returns how many it has added.
    std::uint32_t add_copied(rte_mbuf** mbufs, std::uint32_t count) noexcept;
    std::uint32_t count() const { return index_ - first_; }
    /// How many of them a kernel can already see.
    std::uint32_t published() const { return staging_ ? 0 : count(); }
    std::uint64_t bytes() const { return bytes_; }

 private:
    template <bool Staged, class Next>
    std::uint32_t add_plain(std::uint32_t count, Next&& next) noexcept;
    /// Bytes 0..55 of a completion, in registers: otherwise they would be loaded from memory for each completion.
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
        // Writes one half of the cache line after the other, and keeps the compiler from mixing them: when stores to
        // both halves alternate, a line reaches another core a third slower (measured on EPYC).
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
        else // Release, pairs with the acquire load in weftio_dev_eth_rxq_receive_*: payload and bytes 0..59 first.
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

} // namespace weftio::nic::soft
