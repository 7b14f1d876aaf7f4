#include "nic/port_claim.hpp"

#include <rte_ethdev.h>
#include <rte_pause.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <vector>

#include "core/undying.hpp"

namespace weftio::nic {

namespace {

int hear(std::uint16_t, rte_eth_event_type, void* came, void*)
{
    static_cast<std::atomic<bool>*>(came)->store(true, std::memory_order_release);
    return 0;
}

struct all_claims {
    std::mutex mutex;
    std::vector<const port_claim*> claims;
};

} // namespace

void removal_notice::begin(std::uint16_t port) noexcept
{
    end();
    port_ = port;
    came_.store(false, std::memory_order_relaxed);
    registered_ = rte_eth_dev_callback_register(port, RTE_ETH_EVENT_DESTROY, hear, &came_) == 0;
}

/// DPDK forgets what was registered with a port that is removed.
void removal_notice::end() noexcept
{
    if (!registered_)
        return;
    while (!came() && rte_eth_dev_callback_unregister(port_, RTE_ETH_EVENT_DESTROY, hear, &came_) == -EAGAIN)
        rte_pause(); // it is being called
    registered_ = false;
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
    notice_.end();
}

} // namespace weftio::nic
