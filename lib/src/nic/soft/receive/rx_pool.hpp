// Where a driver gets mbufs from: the slots of a receive queue while some are free, a pool of the port's own otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dpdk/bare_pool.hpp"
#include "dpdk/packet_pools.hpp"

namespace weftio::nic {

class rx_queue;

/// Lets a driver fill the slots of a kernel's queue itself: receiving without copying.
///
/// For drivers that take an mbuf when a packet has come, and hold none between two bursts. Others fill rings of mbufs
/// ahead, which may be of a queue that is gone when the packet comes.
///
/// - Ownership: must outlive the driver's receive queue. `own` is the caller's.
/// - Threads: the engine's, or between two turns.
class rx_pool final : public mbuf_source {
 public:
    /// Throws weftio::error errc::out_of_memory. @param queue  of the driver: a name of its own  @param own  its mbufs
    /// hold at least so many bytes behind the headroom  @param room_bytes  what drivers may fill of an mbuf
    rx_pool(std::string_view queue, rte_mempool* own, std::uint16_t room_bytes);
    rx_pool(const rx_pool&) = delete;
    rx_pool& operator=(const rx_pool&) = delete;
    ~rx_pool();

    rte_mempool* mempool() const noexcept { return pool_; }
    rte_mempool* own() const noexcept { return own_; }
    /// From now on packets go to slots of `queue`; of none if nullptr. @pre of the queue before, no slot is with the
    /// driver
    void lend_from(rx_queue* queue) noexcept { lender_ = queue; }
    rx_queue* lender() const noexcept { return lender_; }
    /// Whether the slots of a queue hold what a driver believes an mbuf of this pool to hold.
    bool is_long_enough(std::uint32_t slot_bytes) const noexcept { return slot_bytes >= room_bytes_; }

    int get(rte_mbuf** mbufs, unsigned count) noexcept override;
    void put(rte_mbuf* const* mbufs, unsigned count) noexcept override;

 private:
    rte_mempool *pool_, *own_;
    std::uint16_t room_bytes_;
    rx_queue* lender_ = nullptr;
};

/// The slots of a port's receive queues, for its driver.
class slot_pools final : public slot_lender {
 public:
    /// Whether `driver` is known to hold no mbufs between two bursts.
    bool suits(const std::string& driver) const noexcept override;
    rte_mempool* lend(unsigned queue, const std::string& name, rte_mempool* own, std::uint16_t room_bytes) override;
    void end() noexcept override { pools_.clear(); }
    /// nullptr when the driver borrows nothing.
    rx_pool* of_queue(unsigned queue) const noexcept { return queue < pools_.size() ? pools_[queue].get() : nullptr; }

 private:
    std::vector<std::unique_ptr<rx_pool>> pools_; ///< one a queue of the driver
};

} // namespace weftio::nic
