#include "dpdk/hotplug.hpp"

#include <rte_dev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <cstdio>
#include <mutex>

#include "core/undying.hpp"
#include "dpdk/close_on_exec.hpp"

namespace weftio::dpdk {

namespace {

struct hotplug {
    std::mutex one_at_a_time;
};

template <class Do>
void for_each_ring_of(const std::string& device, Do&& what) noexcept
{
    for (unsigned number = 0; number < 16; ++number) {
        char name[RTE_RING_NAMESIZE]; // no std::string, which may throw
        std::snprintf(name, sizeof name, "ETH_RXTX%u_%s", number, device.c_str());
        if (rte_ring* ring = rte_ring_lookup(name))
            what(ring);
    }
}

void empty(rte_ring* ring) noexcept
{
    void* frame = nullptr;
    while (rte_ring_dequeue(ring, &frame) == 0)
        rte_pktmbuf_free(static_cast<rte_mbuf*>(frame));
}

} // namespace

int add_device(const char* bus, const std::string& name, const std::string& arguments)
{
    std::scoped_lock lock(core::undying<hotplug>().one_at_a_time);
    const close_on_exec descriptors;
    return rte_eal_hotplug_add(bus, name.c_str(), arguments.c_str());
}

int remove_device(const char* bus, const std::string& name) noexcept
{
    std::scoped_lock lock(core::undying<hotplug>().one_at_a_time);
    return rte_eal_hotplug_remove(bus, name.c_str());
}

void empty_rings_of(const std::string& device) noexcept
{
    for_each_ring_of(device, empty);
}

void free_rings_of(const std::string& device) noexcept
{
    for_each_ring_of(device, rte_ring_free);
}

} // namespace weftio::dpdk
