#define ALLOW_EXPERIMENTAL_API // rte_dev_event_callback_register(), experimental since 2018
#include "dpdk/port_claim.hpp"

#include <rte_dev.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/undying.hpp"

namespace weftio::dpdk {

namespace {

/// Indexed by port number, and never destroyed: DPDK (22.11) keeps a port's callbacks after its removal and calls them
/// for the next port with its number.
using all_removals = std::array<removals, RTE_MAX_ETHPORTS>;

/// DPDK's callback for a removed port. DPDK frees the driver's memory when it returns, so it waits until the attending
/// threads have left the driver, 500 ms at most, for one of them may be the thread that removes the port.
int hear(std::uint16_t port, rte_eth_event_type, void*, void*)
{
    removals& here = core::undying<all_removals>()[port];
    here.count.fetch_add(1, std::memory_order_release);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
    while (here.attending.load(std::memory_order_acquire) != 0 && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    return 0;
}

struct all_claims {
    std::mutex mutex;
    std::vector<const port_claim*> claims;
};

/// DPDK's callback for an unplugged device. vfio asks every ten seconds for the device, which it releases once the
/// process has closed it.
void hear_of_device(const char* device, rte_dev_event_type event, void*)
{
    if (event == RTE_DEV_EVENT_REMOVE)
        port_claim::tell_of_unplugged(device);
}

std::string device_of(std::uint16_t port)
{
    rte_eth_dev_info info{};
    return rte_eth_dev_info_get(port, &info) == 0 && info.device ? rte_dev_name(info.device) : "";
}

} // namespace

void removal_notice::begin(std::uint16_t port) noexcept
{
    removals_ = &core::undying<all_removals>()[port];
    seen_ = removals_->count.load(std::memory_order_acquire);
    unplugged_seen_ = removals_->unplugged.load(std::memory_order_acquire);
    rte_eth_dev_callback_register(port, RTE_ETH_EVENT_DESTROY, hear, nullptr); // DPDK keeps one registration
}

void removal_notice::attend() noexcept
{
    attends_ = true;
    removals_->attending.fetch_add(1, std::memory_order_relaxed);
}

void removal_notice::leave() noexcept
{
    if (std::exchange(attends_, false))
        removals_->attending.fetch_sub(1, std::memory_order_release);
}

bool port_claim::take(std::uint16_t port)
{
    auto& all = core::undying<all_claims>();
    std::scoped_lock lock(all.mutex);
    if (std::any_of(all.claims.begin(), all.claims.end(),
                    [&](const port_claim* other) { return other->port_ == port && !other->removed(); }))
        return false;
    std::string device = device_of(port);
    all.claims.push_back(this);
    port_ = port;
    device_ = std::move(device);
    taken_ = true;
    notice_.begin(port);
    static const int registered = rte_dev_event_callback_register(nullptr, hear_of_device, nullptr);
    static_cast<void>(registered); // without memory for it, nothing is heard of devices
    return true;
}

void port_claim::tell_of_unplugged(const char* device) noexcept
{
    auto& all = core::undying<all_claims>();
    std::scoped_lock lock(all.mutex);
    for (const port_claim* each : all.claims)
        if (each->device_ == device)
            core::undying<all_removals>()[each->port_].unplugged.fetch_add(1, std::memory_order_release);
}

void port_claim::release() noexcept
{
    if (!taken_)
        return;
    auto& all = core::undying<all_claims>();
    std::scoped_lock lock(all.mutex);
    std::erase(all.claims, this);
    taken_ = false;
    notice_ = {}; // later removals do not concern this claim
}

} // namespace weftio::dpdk
