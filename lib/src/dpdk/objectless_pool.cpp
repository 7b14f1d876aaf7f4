#include "dpdk/objectless_pool.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include <array>
#include <atomic>
#include <bitset>
#include <string_view>

#include "core/log.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

/// The name of the mempool driver. Each copy of this library in a process has its own, as it calls its own functions.
/// No string: threads make pools while the process exits.
const char* driver_name()
{
    static const auto name = [] {
        static const char own = 0; // only its address counts
        std::array<char, RTE_MEMPOOL_OPS_NAMESIZE> made{};
        fmt::format_to_n(made.data(), made.size() - 1, "weftio_{}", static_cast<const void*>(&own));
        return made;
    }();
    return name.data();
}

using ops_flags = std::bitset<RTE_MEMPOOL_MAX_OPS_IDX>;

rte_mempool_ops our_operations()
{
    rte_mempool_ops ours{};
    fmt::format_to_n(ours.name, sizeof ours.name - 1, "{}", driver_name());
    ours.alloc = [](rte_mempool*) { return 0; };
    ours.free = [](rte_mempool*) {};
    ours.get_count = [](const rte_mempool*) { return 0U; };
    ours.enqueue = [](rte_mempool* pool, void* const* mbufs, unsigned count) {
        static_cast<mbuf_source*>(pool->pool_config)->put(reinterpret_cast<rte_mbuf* const*>(mbufs), count);
        return 0;
    };
    ours.dequeue = [](rte_mempool* pool, void** mbufs, unsigned count) {
        return static_cast<mbuf_source*>(pool->pool_config)->get(reinterpret_cast<rte_mbuf**>(mbufs), count);
    };
    return ours;
}

ops_flags used_by_pools()
{
    ops_flags used;
    rte_mempool_walk(
        [](rte_mempool* pool, void* found) {
            static_cast<ops_flags*>(found)->set(static_cast<std::size_t>(pool->ops_index));
        },
        &used);
    return used;
}

/// Mempool drivers that any program may need: those of rings and stacks, and the default driver of mbufs on this
/// platform.
bool is_general(std::string_view driver)
{
    return driver.starts_with("ring_") || driver.ends_with("stack") || driver == rte_mbuf_best_mempool_ops();
}

/// Replaces a driver in DPDK's full table of mempool drivers by ours: the last one that no pool uses and that is not
/// general. Returns false if there is none. DPDK 24.11's own drivers take 15 of 16 places, most of them for processors
/// with hardware pools.
bool replace_unused_driver()
{
    const ops_flags used = used_by_pools();
    rte_spinlock_lock(&rte_mempool_ops_table.sl);
    std::string before;
    for (std::size_t index = used.size(); index-- > 0 && before.empty();)
        if (rte_mempool_ops& there = rte_mempool_ops_table.ops[index]; !used[index] && !is_general(there.name)) {
            before = there.name;
            there = our_operations();
        }
    rte_spinlock_unlock(&rte_mempool_ops_table.sl);
    if (!before.empty())
        core::log(
            log_level::info,
            fmt::format(
                "weftio: DPDK's table of mempool drivers is full ({} entries); replaced driver {}, which no pool uses",
                RTE_MEMPOOL_MAX_OPS_IDX, before));
    return !before.empty();
}

/// Registers at run time instead of by DPDK's constructor macro, which a static library would lose.
void register_driver()
{
    const bool full = rte_mempool_ops_table.num_ops >= RTE_MEMPOOL_MAX_OPS_IDX;
    if (full && replace_unused_driver())
        return;
    const rte_mempool_ops ours = our_operations();
    if (int result = full ? -ENOSPC : rte_mempool_register_ops(&ours); result < 0)
        throw error(errc::out_of_memory,
                    fmt::format("weftio: DPDK's table of mempool drivers is full ({}): pools use all {} entries; free "
                                "the pools of one driver, or link fewer drivers",
                                rte_strerror(-result), RTE_MEMPOOL_MAX_OPS_IDX));
}

} // namespace

rte_mempool* make_objectless_pool(const std::string& name, mbuf_source& source, std::uint16_t room_bytes)
{
    [[maybe_unused]] static const bool registered = (register_driver(), true);
    rte_mempool* pool = rte_mempool_create_empty(name.c_str(), 1, sizeof(rte_mbuf), 0, sizeof(rte_pktmbuf_pool_private),
                                                 SOCKET_ID_ANY, 0);
    if (!pool || rte_mempool_set_ops_byname(pool, driver_name(), &source) != 0) {
        int reason = rte_errno;
        rte_mempool_free(pool);
        throw error(
            errc::out_of_memory,
            fmt::format("weftio: cannot create packet pool {}: {}; close ports or queues, or give EAL more memory",
                        name, rte_strerror(reason)));
    }
    rte_pktmbuf_pool_private room{};
    room.mbuf_data_room_size = room_bytes;
    rte_pktmbuf_pool_init(pool, &room);
    return pool;
}

unsigned next_pool_number(std::string_view kind)
{
    static std::atomic<unsigned> last{0};
    unsigned number = 0;
    do
        number = last.fetch_add(1);
    while (rte_mempool_lookup(fmt::format("{}{}", kind, number).c_str()));
    return number;
}

} // namespace weftio::dpdk
