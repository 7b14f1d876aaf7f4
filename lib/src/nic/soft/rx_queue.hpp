// A receive queue as the NIC sees it: slots to fill, completions to write, a doorbell record to believe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/counter.hpp"
#include "weftio/device/ring.h"

struct rte_mbuf;

namespace weftio::nic {

/// Memory of a ring, in CPU addresses. Its owner keeps it until the queue is gone from the engine.
struct rx_ring {
    weftio_cqe* completions = nullptr;
    const std::uint32_t* dbrec = nullptr; ///< written by the kernel: entries posted in all, low 16 bits, big-endian
    std::byte* slots = nullptr;
    std::uint32_t depth = 0; ///< power of two, at most 32768
    std::uint32_t stride_bytes = 0;
    std::uint32_t number = 0;
    bool verify_checksums = true;
};

/// What the engine knows about a packet besides its bytes.
struct rx_facts {
    std::uint64_t timestamp_ns = 0;
    std::uint32_t rss_hash = 0;
    bool has_rss_hash = false;
    std::uint8_t hds_ip_ext = 0;      ///< as in the completion
    std::uint8_t l4_hdr_type_etc = 0; ///< as in the completion
    std::uint16_t vlan_tci = 0;
};

/// Owned and driven by one engine. Counters may be read from anywhere.
class rx_queue {
 public:
    explicit rx_queue(const rx_ring& ring) : ring_(ring) {}

    bool fits(std::uint32_t bytes) const { return bytes <= ring_.stride_bytes; }
    /// Whether a slot is free. Reads the doorbell record only when none is known to be.
    bool has_room();
    /// Copies a packet into the next slot, which nobody else looks at before complete(). @pre has_room(), fits()
    std::span<std::uint8_t> copy(const rte_mbuf& mbuf);
    /// Publishes the completion of the next slot.
    void complete(std::uint32_t bytes, const rx_facts& facts);
    const rx_ring& ring() const { return ring_; }
    /// The kernel is given up: nothing is delivered any more, what was posted and is not filled is flushed.
    void stop();
    bool stopped() const { return stopped_; }
    /// Starts again at index 0, in a ring that has been made anew.
    void restart(const rx_ring& ring);

    /// What a kernel posted is delivered, free, or, once the queue was stopped, flushed.
    detail::counter delivered, delivered_bytes, out_of_buffer, too_long, flushed;

 private:
    rx_ring ring_;
    std::uint32_t filled_ = 0; ///< free-running index of the next slot
    std::uint32_t free_ = 0;   ///< slots known to be free
    bool stopped_ = false;
};

} // namespace weftio::nic
