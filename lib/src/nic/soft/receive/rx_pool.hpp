// The pool from which a driver takes mbufs: slots of a receive queue while some are free, else mbufs of the port
// itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk/bare_pool.hpp"
#include "dpdk/packet_pools.hpp"

namespace weftio::nic::soft {

class rx_queue;

/// Receive step 2, zero copy: lends the free slots of a receive queue to the driver as mbufs. The driver writes packets
/// into the slots, and the kernel reads them there.
///
/// It suits drivers that take an mbuf when a packet has come, and hold none between two bursts. Other drivers fill
/// rings with mbufs in advance; a queue whose slots lie there may be closed before a packet comes.
///
/// - Ownership: a pool must outlive the receive queue of the driver. `own` belongs to the caller.
/// - Threads: only the engine calls a pool, in a turn or between two turns.
class rx_pool final : public dpdk::mbuf_source {
 public:
    /// @param queue       name of the driver's queue, for the name of the pool
    /// @param own         pool of the port's own mbufs, each with at least `room_bytes` behind the headroom
    /// @param room_bytes  the most bytes that the driver writes to an mbuf
    /// @throws weftio::error errc::out_of_memory
    rx_pool(std::string_view queue, rte_mempool* own, std::uint16_t room_bytes);
    rx_pool(const rx_pool&) = delete;
    rx_pool& operator=(const rx_pool&) = delete;
    ~rx_pool();

    rte_mempool* mempool() const noexcept { return pool_; }
    rte_mempool* own() const noexcept { return own_; }
    /// Sets the lender: the queue whose slots get() lends; nullptr: none.
    /// @pre the driver holds no slot of the lender before
    void lend_from(rx_queue* queue) noexcept { lender_ = queue; }
    rx_queue* lender() const noexcept { return lender_; }
    /// Whether slots of this length hold as much as the driver writes to an mbuf of this pool.
    bool is_long_enough(std::uint32_t slot_bytes) const noexcept { return slot_bytes >= room_bytes_; }

    /// Receive step 2: the driver takes mbufs. They are slots while the lender has free ones, else mbufs of `own`.
    int get(rte_mbuf** mbufs, unsigned count) noexcept override;
    /// The driver gives mbufs of this pool back: their slots are free again.
    void put(rte_mbuf* const* mbufs, unsigned count) noexcept override;

 private:
    rte_mempool *pool_, *own_;
    std::uint16_t room_bytes_;
    rx_queue* lender_ = nullptr;
};

/// The pools of a port, one for each receive queue of its driver.
class slot_pools final : public dpdk::slot_lender {
 public:
    /// Whether `driver` is known to hold no mbufs between two bursts.
    bool suits(const std::string& driver) const noexcept override;
    rte_mempool* lend(unsigned queue, const std::string& name, rte_mempool* own, std::uint16_t room_bytes) override;
    void end() noexcept override { pools_.clear(); }
    /// The pool of that queue of the driver; nullptr when the driver borrows nothing.
    rx_pool* of_queue(unsigned queue) const noexcept { return queue < pools_.size() ? pools_[queue].get() : nullptr; }

 private:
    std::vector<std::unique_ptr<rx_pool>> pools_; ///< one for each receive queue of the driver
};

} // namespace weftio::nic::soft
