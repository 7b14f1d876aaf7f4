#include "nic/soft/send_headers.hpp"

#include <fmt/format.h>

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

int send_operations()
{
    static const int operations = [] {
        rte_mempool_ops ours{};
        ours.enqueue = take_back;
        ours.dequeue = nothing_to_give;
        return register_pool_operations("weftio_send", ours);
    }();
    return operations;
}

rte_mempool* made_pool()
{
    static std::atomic<unsigned> made{0};
    return make_bare_pool(fmt::format("weftio_tx_{}", made.fetch_add(1)), "weftio_send", nullptr, UINT16_MAX);
}

} // namespace

std::atomic<int> lent_headers::made{-1};

send_pool::~send_pool()
{
    rte_mempool_free(pool_);
}

std::unique_ptr<send_header[]> send_pool::make(std::uint32_t depth)
{
    if (!pool_) {
        lent_headers::made.store(send_operations(), std::memory_order_relaxed);
        pool_ = made_pool();
    }
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
