#include "dpdk/port_claim.hpp"

#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <vector>

#include "core/undying.hpp"

namespace weftio::nic {

namespace {

/// By port number. DPDK (22.11) keeps what is registered with a port when that is removed, and calls it for the next
/// one with the number: so it gets nothing that could end.
using removal_counts = std::array<std::atomic<std::uint32_t>, RTE_MAX_ETHPORTS>;

int hear(std::uint16_t port, rte_eth_event_type, void*, void*)
{
    detail::undying<removal_counts>()[port].fetch_add(1, std::memory_order_release);
    return 0;
}

struct all_claims {
    std::mutex mutex;
    std::vector<const port_claim*> claims;
};

} // namespace

void removal_notice::begin(std::uint16_t port) noexcept
{
    removals_ = &detail::undying<removal_counts>()[port];
    seen_ = removals_->load(std::memory_order_acquire);
    rte_eth_dev_callback_register(port, RTE_ETH_EVENT_DESTROY, hear, nullptr); // once, however often
}

bool port_claim::take(std::uint16_t port)
{
    auto& all = detail::undying<all_claims>();
    std::scoped_lock lock(all.mutex);
    if (std::any_of(all.claims.begin(), all.claims.end(),
                    [&](const port_claim* other) { return other->port_ == port && !other->removed(); }))
        return false;
    all.claims.push_back(this);
    port_ = port;
    taken_ = true;
    notice_.begin(port);
    return true;
}

void port_claim::release() noexcept
{
    if (!taken_)
        return;
    auto& all = detail::undying<all_claims>();
    std::scoped_lock lock(all.mutex);
    std::erase(all.claims, this);
    taken_ = false;
}

} // namespace weftio::nic
