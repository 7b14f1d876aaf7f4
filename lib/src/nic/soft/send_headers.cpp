#include "nic/soft/send_headers.hpp"

#include <fmt/format.h>
#include <rte_mempool.h>

#include "nic/soft/bare_pool.hpp"

namespace weftio::nic {

namespace {

int take_back(rte_mempool*, void* const* objects, unsigned count)
{
    for (unsigned at = 0; at < count; ++at)
        static_cast<send_header*>(objects[at])->settle();
    return 0;
}

int nothing_to_give(rte_mempool*, void**, unsigned)
{
    return -ENOBUFS;
}

/// Of send pools, among those of DPDK. Negative before there is one.
std::atomic<int> send_operations{-1};

rte_mempool* made_pool()
{
    static const int operations = [] {
        rte_mempool_ops ours{};
        ours.enqueue = take_back;
        ours.dequeue = nothing_to_give;
        return register_pool_operations("weftio_send", ours);
    }();
    static std::atomic<unsigned> made{0};
    send_operations.store(operations, std::memory_order_relaxed);
    return make_bare_pool(fmt::format("weftio_tx_{}", made.fetch_add(1)), "weftio_send", nullptr, UINT16_MAX);
}

} // namespace

void give_back(rte_mbuf** mbufs, std::uint32_t count) noexcept
{
    const int ours = send_operations.load(std::memory_order_relaxed);
    auto is_lent_once = [ours](const rte_mbuf& mbuf) {
        return mbuf.pool->ops_index == ours && mbuf.nb_segs == 1 && rte_mbuf_refcnt_read(&mbuf) == 2;
    };
    for (std::uint32_t at = 0; at < count;) {
        for (; at < count && is_lent_once(*mbufs[at]); ++at)
            reinterpret_cast<send_header*>(mbufs[at])->settle(); // which the mbuf begins
        const std::uint32_t first = at;
        while (at < count && !is_lent_once(*mbufs[at]))
            ++at;
        if (first != at)
            rte_pktmbuf_free_bulk(&mbufs[first], at - first);
    }
}

send_pool::~send_pool()
{
    rte_mempool_free(pool_);
}

std::unique_ptr<send_header[]> send_pool::make(std::uint32_t depth)
{
    if (!pool_)
        pool_ = made_pool();
    kept_.reserve(kept_.size() + queues_ + 1);
    std::unique_ptr<send_header[]> headers(new send_header[depth]);
    for (std::uint32_t slot = 0; slot < depth; ++slot) {
        rte_mbuf& mbuf = headers[slot].mbuf;
        mbuf = {};
        mbuf.pool = pool_;
        mbuf.nb_segs = 1;
        mbuf.port = RTE_MBUF_PORT_INVALID;
        headers[slot].settle();
    }
    ++queues_;
    return headers;
}

void send_pool::take(std::unique_ptr<send_header[]> headers, bool driver_holds_some) noexcept
{
    --queues_;
    if (driver_holds_some)
        kept_.push_back(std::move(headers));
}

} // namespace weftio::nic
