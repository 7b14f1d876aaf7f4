// Mempools without objects of their own: what is put into one is ours, and so is what comes out.
#pragma once

#include <cstdint>
#include <string>

struct rte_mempool;
struct rte_mempool_ops;

namespace weftio::nic {

/// Registers `operations`, of which alloc and free are filled in here, with DPDK. Throws weftio::error errc::out_of_memory.
/// By hand, not by DPDK's macro, so that a static library does not lose it; call it once for each kind of pool.
int register_pool_operations(const char* name, rte_mempool_ops operations);

/// A packet pool that calls operations `operations` with `context` as its pool_config, and tells drivers that its mbufs have
/// `room_bytes`. The caller frees it. Throws weftio::error errc::out_of_memory.
rte_mempool* make_bare_pool(const std::string& name, const char* operations, void* context, std::uint16_t room_bytes);

} // namespace weftio::nic
