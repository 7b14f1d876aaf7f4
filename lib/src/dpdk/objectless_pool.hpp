// Objectless mempools: they hold no mbufs of their own and pass every get and put to a source of the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

struct rte_mbuf;
struct rte_mempool;

namespace weftio::dpdk {

/// The source of an objectless mempool's mbufs, which also takes them back.
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

/// Makes an objectless packet pool that calls `source`, and tells drivers that its mbufs have `room_bytes`. The caller
/// frees the pool; `source` must outlive it and is its pool_config.
///
/// The first call registers a mempool driver with DPDK, whose table has RTE_MEMPOOL_MAX_OPS_IDX places. If the table is
/// full, it replaces a driver that no pool uses; the process can then make no more pools of that driver. Throws
/// weftio::error errc::out_of_memory.
rte_mempool* make_objectless_pool(const std::string& name, mbuf_source& source, std::uint16_t room_bytes);

/// A number for the name of a pool: no pool is named `kind` followed by it. Another copy of this library in the
/// process, as in a plug-in, has pools with such names, too. Thread-safe within this copy.
unsigned next_pool_number(std::string_view kind);

} // namespace weftio::dpdk
