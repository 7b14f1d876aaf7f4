#include "nic/soft/bare_pool.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "weftio/error.hpp"

namespace weftio::nic {

namespace {

int nothing_to_allocate(rte_mempool*)
{
    return 0;
}

void nothing_to_free(rte_mempool*) {}

unsigned none_available(const rte_mempool*)
{
    return 0;
}

} // namespace

int register_pool_operations(const char* name, rte_mempool_ops operations)
{
    fmt::format_to_n(operations.name, sizeof operations.name - 1, "{}", name);
    operations.alloc = nothing_to_allocate;
    operations.free = nothing_to_free;
    operations.get_count = none_available;
    int registered = rte_mempool_register_ops(&operations);
    if (registered < 0)
        throw error(errc::out_of_memory,
                    fmt::format("weftio: DPDK takes no more mempool drivers ({}); at most {} may be linked into a program",
                                rte_strerror(-registered), RTE_MEMPOOL_MAX_OPS_IDX));
    return registered;
}

rte_mempool* make_bare_pool(const std::string& name, const char* operations, void* context, std::uint16_t room_bytes)
{
    rte_mempool* pool =
        rte_mempool_create_empty(name.c_str(), 1, sizeof(rte_mbuf), 0, sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, 0);
    if (!pool || rte_mempool_set_ops_byname(pool, operations, context) != 0) {
        int reason = rte_errno;
        rte_mempool_free(pool);
        throw error(errc::out_of_memory,
                    fmt::format("weftio: no packet pool {}: {}; close ports or queues, or give EAL more memory", name,
                                rte_strerror(reason)));
    }
    rte_pktmbuf_pool_private room{};
    room.mbuf_data_room_size = room_bytes;
    rte_pktmbuf_pool_init(pool, &room);
    return pool;
}

} // namespace weftio::nic
