#include "nic/soft/rx_pool.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "nic/soft/rx_queue.hpp"

namespace weftio::nic {

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
    pool_ = make_bare_pool(fmt::format("weftio_slots_{}", queue), *this, RTE_MBUF_DEFAULT_BUF_SIZE);
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
