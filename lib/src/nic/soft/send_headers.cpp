#include "nic/soft/send_headers.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mempool.h>

#include "weftio/error.hpp"

namespace weftio::nic {

namespace {

int nothing_to_allocate(rte_mempool*)
{
    return 0;
}

void nothing_to_free(rte_mempool*) {}

int take_back(rte_mempool*, void* const* objects, unsigned count)
{
    for (unsigned at = 0; at < count; ++at)
        // Release, pairs with the engine's acquire: the driver's last read of the frame is over.
        static_cast<send_header*>(objects[at])->returned.store(1, std::memory_order_release);
    return 0;
}

int nothing_to_give(rte_mempool*, void**, unsigned)
{
    return -ENOBUFS;
}

unsigned none_available(const rte_mempool*)
{
    return 0;
}

/// Registered by hand, not by DPDK's macro, so that a static library does not lose it.
void register_operations()
{
    static const int registered = [] {
        rte_mempool_ops operations{};
        fmt::format_to_n(operations.name, sizeof operations.name - 1, "weftio_send");
        operations.alloc = nothing_to_allocate;
        operations.free = nothing_to_free;
        operations.enqueue = take_back;
        operations.dequeue = nothing_to_give;
        operations.get_count = none_available;
        return rte_mempool_register_ops(&operations);
    }();
    if (registered < 0)
        throw error(errc::out_of_memory, fmt::format("weftio: DPDK takes no more mempool drivers ({}); at most {} may be linked into a program",
                                                     rte_strerror(-registered), RTE_MEMPOOL_MAX_OPS_IDX));
}

rte_mempool* made_pool()
{
    static std::atomic<unsigned> made{0};
    register_operations();
    rte_mempool* pool = rte_mempool_create_empty(fmt::format("weftio_tx_{}", made.fetch_add(1)).c_str(), 1, sizeof(send_header), 0,
                                                 sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, 0);
    if (!pool || rte_mempool_set_ops_byname(pool, "weftio_send", nullptr) != 0) {
        int reason = rte_errno;
        rte_mempool_free(pool);
        throw error(errc::out_of_memory, fmt::format("weftio: eth_txq: no pool for send headers: {}; close ports or queues, or give EAL more "
                                                     "memory",
                                                     rte_strerror(reason)));
    }
    rte_pktmbuf_pool_private room{};
    room.mbuf_data_room_size = UINT16_MAX;
    rte_pktmbuf_pool_init(pool, &room);
    return pool;
}

} // namespace

send_pool::~send_pool()
{
    rte_mempool_free(pool_);
}

std::unique_ptr<send_header[]> send_pool::make(std::uint32_t depth)
{
    if (!pool_)
        pool_ = made_pool();
    std::unique_ptr<send_header[]> headers(new send_header[depth]);
    for (std::uint32_t slot = 0; slot < depth; ++slot) {
        rte_mbuf& mbuf = headers[slot].mbuf;
        mbuf = {};
        mbuf.pool = pool_;
        mbuf.nb_segs = 1;
        mbuf.port = RTE_MBUF_PORT_INVALID;
        rte_mbuf_refcnt_set(&mbuf, 1);
    }
    return headers;
}

} // namespace weftio::nic
