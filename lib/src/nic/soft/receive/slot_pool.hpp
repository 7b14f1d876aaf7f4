// The pool from which a driver takes mbufs: slots of the lender while some are free, otherwise mbufs of the port.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk/objectless_pool.hpp"
#include "dpdk/packet_pools.hpp"

namespace weftio::nic::soft {

class rx_queue;

/// Receive step 2, zero copy: a mempool without objects. Through it, a driver takes free slots of the lender and
/// returns them. The driver writes packets into the lent slots, and the kernel reads them there.
///
/// Suitable only for drivers that take an mbuf when a packet has arrived and hold none between two bursts. Other
/// drivers fill rings with mbufs in advance, and the lender may be closed before a packet arrives.
///
/// - Ownership: a pool must outlive the receive queue of the driver. `own` belongs to the caller.
/// - Threads: called by the engine's thread only, in a turn or between two turns.
class slot_pool final : public dpdk::mbuf_source {
 public:
    /// @param queue       name of the driver's queue, for the name of the pool
    /// @param own         pool of the port's own mbufs, each with at least `room_bytes` after the headroom
    /// @param room_bytes  the most bytes that the driver writes to an mbuf
    /// @throws weftio::error errc::out_of_memory
    slot_pool(std::string_view queue, rte_mempool* own, std::uint16_t room_bytes);
    slot_pool(const slot_pool&) = delete;
    slot_pool& operator=(const slot_pool&) = delete;
    ~slot_pool();

    rte_mempool* mempool() const noexcept { return pool_; }
    rte_mempool* own() const noexcept { return own_; }
    /// Sets the lender: the queue whose slots the driver takes; nullptr: none.
    /// @pre the lender before has no lent slot
    void set_lender(rx_queue* queue) noexcept { lender_ = queue; }
    rx_queue* lender() const noexcept { return lender_; }
    /// Whether slots of this length are as long as the driver needs.
    bool is_long_enough(std::uint32_t slot_bytes) const noexcept { return slot_bytes >= room_bytes_; }

    /// Receive step 2: the driver takes mbufs: slots of the lender while it has free ones, then mbufs of `own`.
    int get(rte_mbuf** mbufs, unsigned count) noexcept override;
    /// The driver returns lent slots: they are free again.
    void put(rte_mbuf* const* mbufs, unsigned count) noexcept override;

 private:
    rte_mempool *pool_, *own_;
    std::uint16_t room_bytes_;
    rx_queue* lender_ = nullptr;
};

/// The slot pools of a port, one for each receive queue of its driver.
class slot_pools final : public dpdk::slot_pool_maker {
 public:
    /// Whether `driver` is known to hold no mbufs between two bursts.
    bool suits(const std::string& driver) const noexcept override;
    rte_mempool* make(unsigned queue, const std::string& name, rte_mempool* own, std::uint16_t room_bytes) override;
    void free_all() noexcept override { pools_.clear(); }
    /// The pool of this queue of the driver; nullptr: the driver takes no slots.
    slot_pool* of_queue(unsigned queue) const noexcept { return queue < pools_.size() ? pools_[queue].get() : nullptr; }

 private:
    std::vector<std::unique_ptr<slot_pool>> pools_; ///< one for each receive queue of the driver
};

} // namespace weftio::nic::soft
