#include "nic/soft/receive/slot_pool.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "nic/soft/receive/rx_queue.hpp"

namespace weftio::nic::soft {

slot_pool::slot_pool(std::string_view queue, rte_mempool* own, std::uint16_t room_bytes)
    : own_(own), room_bytes_(room_bytes)
{
    pool_ = dpdk::make_objectless_pool(fmt::format("weftio_slots_{}", queue), *this,
                                       static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + room_bytes));
}

slot_pool::~slot_pool()
{
    rte_mempool_free(pool_);
}

int slot_pool::get(rte_mbuf** mbufs, unsigned count) noexcept
{
    unsigned lent = lender_ ? lender_->lend(mbufs, count) : 0;
    if (lent == count)
        return 0;
    int result = rte_mempool_get_bulk(own_, reinterpret_cast<void**>(mbufs + lent), count - lent);
    if (result != 0)
        put(mbufs, lent);
    return result;
}

void slot_pool::put(rte_mbuf* const* mbufs, unsigned count) noexcept
{
    for (unsigned at = 0; at < count; ++at)
        lender_->take_back(mbufs[at]);
}

bool slot_pools::suits(const std::string& driver) const noexcept
{
    constexpr std::array<std::string_view, 3> known{"net_af_packet", "net_null", "net_pcap"};
    return std::find(known.begin(), known.end(), driver) != known.end();
}

rte_mempool* slot_pools::make(unsigned queue, const std::string& name, rte_mempool* own, std::uint16_t room_bytes)
{
    pools_.resize(queue);
    return pools_.emplace_back(std::make_unique<slot_pool>(name, own, room_bytes))->mempool();
}

} // namespace weftio::nic::soft
