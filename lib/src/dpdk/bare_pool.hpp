// Mempools without objects of their own: what is put into one is ours, and so is what comes out.
#pragma once

#include <cstdint>
#include <string>

struct rte_mbuf;
struct rte_mempool;

namespace weftio::nic {

/// Where the mbufs of a bare pool come from, and where they go.
class mbuf_source {
 public:
    /// Hands out `count` mbufs, or none. Returns 0 or a negative errno.
    virtual int get(rte_mbuf** mbufs, unsigned count) noexcept = 0;
    virtual void put(rte_mbuf* const* mbufs, unsigned count) noexcept = 0;

 protected:
    mbuf_source() = default;
    mbuf_source(const mbuf_source&) = default;
    mbuf_source& operator=(const mbuf_source&) = default;
    ~mbuf_source() = default;
};

/// A packet pool that calls `source`, and tells drivers that its mbufs have `room_bytes`. The caller frees it; `source`
/// must outlive it. `source` is its pool_config.
///
/// The first call registers a mempool driver with DPDK, whose table has RTE_MEMPOOL_MAX_OPS_IDX places. In a full table
/// it takes the place of a driver that no pool uses; pools of that driver cannot be made any more in this process.
/// Throws weftio::error errc::out_of_memory.
rte_mempool* make_bare_pool(const std::string& name, mbuf_source& source, std::uint16_t room_bytes);

} // namespace weftio::nic
