#include "nic/soft/rx_pool.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "nic/soft/bare_pool.hpp"
#include "nic/soft/rx_queue.hpp"

namespace weftio::nic {

namespace {

rx_pool& pool_of(const rte_mempool* pool)
{
    return *static_cast<rx_pool*>(pool->pool_config);
}

int give(rte_mempool* pool, void** mbufs, unsigned count)
{
    return pool_of(pool).get(reinterpret_cast<rte_mbuf**>(mbufs), count);
}

int take_back(rte_mempool* pool, void* const* mbufs, unsigned count)
{
    pool_of(pool).put(reinterpret_cast<rte_mbuf* const*>(mbufs), count);
    return 0;
}

} // namespace

bool rx_pool::suits(const char* driver) noexcept
{
    constexpr std::array<std::string_view, 3> known{"net_af_packet", "net_null", "net_pcap"};
    return std::find(known.begin(), known.end(), driver) != known.end();
}

bool rx_pool::is_long_enough(std::uint32_t slot_bytes) noexcept
{
    return slot_bytes >= RTE_MBUF_DEFAULT_DATAROOM;
}

rx_pool::rx_pool(std::string_view queue, rte_mempool* own) : own_(own)
{
    static const int operations = [] {
        rte_mempool_ops ours{};
        ours.enqueue = take_back;
        ours.dequeue = give;
        return register_pool_operations("weftio_receive", ours);
    }();
    (void)operations;
    pool_ = make_bare_pool(fmt::format("weftio_slots_{}", queue), "weftio_receive", this, RTE_MBUF_DEFAULT_BUF_SIZE);
}

rx_pool::~rx_pool()
{
    rte_mempool_free(pool_);
}

int rx_pool::get(rte_mbuf** mbufs, unsigned count) noexcept
{
    unsigned lent = lender_ ? lender_->lend(mbufs, count) : 0;
    if (lent == count)
        return 0;
    int result = rte_mempool_get_bulk(own_, reinterpret_cast<void**>(mbufs + lent), count - lent);
    if (result != 0)
        put(mbufs, lent);
    return result;
}

void rx_pool::put(rte_mbuf* const* mbufs, unsigned count) noexcept
{
    for (unsigned at = 0; at < count; ++at)
        lender_->take_back(mbufs[at]);
}

} // namespace weftio::nic
