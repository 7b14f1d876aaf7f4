#include "dpdk/packet_pools.hpp"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <utility>

#include "core/log.hpp"
#include "dpdk/leftover.hpp"
#include "dpdk/objectless_pool.hpp"

namespace weftio::dpdk {

namespace {

constexpr unsigned pool_mbufs =
    8191; // 2^n - 1 fits DPDK's ring; takes 18 MiB, or 32 without hugepages, where each mbuf takes a page
constexpr unsigned few_mbufs = 2047; // for drivers that hold no mbufs between bursts
constexpr unsigned long_mbufs = 511; // the same, for frames of up to 16 KiB
constexpr unsigned pool_cache = 256;
constexpr unsigned copy_mbufs = 511;      // for frames that cannot be sent from where they lie
constexpr unsigned long_copy_mbufs = 127; // the same, for frames of up to 64 KiB
// More than a NIC driver's ring has entries, because the driver may keep a full ring of sent mbufs.
constexpr unsigned nic_copy_mbufs = 1023;
constexpr const char* counts_buffers = "net_af_xdp";

/// Makes a pool for AF_XDP in which each object, header included, takes a page. Linux lets an AF_XDP socket fill only
/// as many different buffers as its memory has pages; beyond that nothing arrives any more (seen on 6.18 with DPDK
/// 22.11). Returns nullptr, and sets rte_errno, without memory.
rte_mempool* make_paged_pool(const std::string& name, unsigned mbufs, int socket)
{
    const unsigned object_bytes = static_cast<unsigned>(sysconf(_SC_PAGESIZE)) - RTE_CACHE_LINE_SIZE;
    rte_mempool* pool = rte_mempool_create_empty(name.c_str(), mbufs, object_bytes, pool_cache,
                                                 sizeof(rte_pktmbuf_pool_private), socket, RTE_MEMPOOL_F_NO_SPREAD);
    if (!pool)
        return nullptr;
    rte_pktmbuf_pool_private room{};
    room.mbuf_data_room_size =
        static_cast<std::uint16_t>(std::min<std::size_t>(object_bytes - sizeof(rte_mbuf), UINT16_MAX));
    rte_pktmbuf_pool_init(pool, &room);
    if (rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), nullptr) != 0 ||
        rte_mempool_populate_default(pool) < 0) {
        rte_mempool_free(pool);
        return nullptr;
    }
    rte_mempool_obj_iter(pool, rte_pktmbuf_init, nullptr);
    return pool;
}

/// The size of one pool for all queues, from that of a pool for one. Both are 2^n - 1, which fits DPDK's ring.
unsigned of_all(unsigned mbufs_each, unsigned queues)
{
    return (mbufs_each + 1) * std::bit_ceil(queues) - 1;
}

/// A closed port's pool, some of whose mbufs are still held.
class leftover_pool final : public leftover {
 public:
    explicit leftover_pool(rte_mempool* pool) noexcept : pool_(pool) {}
    ~leftover_pool() override { rte_mempool_free(pool_); }
    bool returned() const noexcept override { return rte_mempool_full(pool_) != 0; }

 private:
    rte_mempool* pool_;
};

void free_or_leave(const std::string& device, rte_mempool* pool) noexcept
try {
    if (!pool || rte_mempool_full(pool) != 0) {
        rte_mempool_free(pool);
        return;
    }
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio: device {} is closed, but {} mbufs of pool {} are still in use; the pool is kept "
                           "until they are returned",
                           device, rte_mempool_in_use_count(pool), pool->name);
    });
    leftover_list leftovers;
    leftovers.push_back(std::make_unique<leftover_pool>(pool));
    keep_until_returned(std::move(leftovers));
} catch (const std::bad_alloc&) { // the pool leaks
}

} // namespace

bool packet_pools::make(const std::string& driver, const need& need)
{
    driver_ = driver;
    const bool takes_slots = maker_.suits(driver);
    const auto room = static_cast<std::uint16_t>(std::max<std::uint32_t>(RTE_MBUF_DEFAULT_DATAROOM, need.frame_bytes));
    const unsigned few = room > RTE_MBUF_DEFAULT_DATAROOM && takes_slots ? long_mbufs : few_mbufs;
    const unsigned mbufs = of_all(takes_slots || need.holds_none ? few : pool_mbufs, need.queues);
    // The port number would not do: pools can outlive the port, whose number is then reused.
    const unsigned number = next_pool_number("weftio_rx_");
    const std::string name = fmt::format("weftio_rx_{}", number);
    own_ = driver == counts_buffers
               ? make_paged_pool(name, mbufs, need.socket)
               : rte_pktmbuf_pool_create(name.c_str(), mbufs, pool_cache, 0,
                                         static_cast<std::uint16_t>(RTE_PKTMBUF_HEADROOM + room), need.socket);
    const bool long_copies = need.sent_bytes > copy_bytes;
    const unsigned copies = need.on_bus ? nic_copy_mbufs : long_copies ? long_copy_mbufs : copy_mbufs;
    copies_ = rte_pktmbuf_pool_create(
        fmt::format("weftio_copy_{}", number).c_str(), of_all(copies, need.queues), 0, 0,
        static_cast<std::uint16_t>(std::max<std::uint32_t>(copy_bytes + RTE_PKTMBUF_HEADROOM, need.sent_bytes)),
        need.socket);
    if (!own_ || !copies_)
        return false;
    for (unsigned queue = 0; takes_slots && queue < need.queues; ++queue)
        slot_pools_.push_back(maker_.make(queue, fmt::format("{}_{}", number, queue), own_, room));
    return true;
}

void packet_pools::let_go(const std::string& device) noexcept
{
    slot_pools_.clear();
    maker_.free_all();
    if (driver_ ==
        counts_buffers) // the closed driver never gives back the mbufs of its rings, and nobody else holds any
        rte_mempool_free(std::exchange(own_, nullptr));
    free_or_leave(device, std::exchange(own_, nullptr));
    free_or_leave(device, std::exchange(copies_, nullptr));
}

} // namespace weftio::dpdk
