// The mbuf pools of a port: mbufs that its driver fills, and copies of frames that cannot be sent from where they lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct rte_mempool;

namespace weftio::dpdk {

constexpr std::uint16_t copy_bytes = 16384;       ///< longest frame that Weftio sends, but for capture files
constexpr std::uint16_t tagged_header_bytes = 22; ///< Ethernet header and two VLAN tags
constexpr std::uint16_t least_mtu = 68, most_mtu = copy_bytes - tagged_header_bytes; ///< the least is that of IPv4
/// Of a port that writes a capture file: an mbuf's length has 16 bits, as long as the snapshot length of the file.
constexpr std::uint16_t most_mtu_of_a_file = UINT16_MAX - tagged_header_bytes;

/// Makes slot pools: mempools by which a driver takes slots that kernels read, so that nothing is copied on receive.
class slot_pool_maker {
 public:
    virtual ~slot_pool_maker() = default;
    /// Whether `driver` may take slots.
    virtual bool suits(const std::string& driver) const noexcept = 0;
    /// Makes the pool from which the driver's receive queue `queue` takes mbufs. `name` is unique. While no slot is
    /// free, the pool takes mbufs from `own`, whose mbufs hold `room_bytes`. Throws weftio::error errc::out_of_memory.
    virtual rte_mempool* make(unsigned queue, const std::string& name, rte_mempool* own, std::uint16_t room_bytes) = 0;
    /// Frees the pools. Call it when the driver and its queues are gone.
    virtual void free_all() noexcept = 0;
};

/// Not thread-safe.
class packet_pools {
 public:
    struct need {
        int socket = 0;
        unsigned queues = 1;
        std::uint32_t frame_bytes = 0; ///< most bytes that the driver writes into one mbuf; 0: DPDK's default
        std::uint32_t sent_bytes = 0;  ///< longest frame that is sent; below copy_bytes: that
        bool holds_none = false;       ///< no driver holds mbufs between bursts
        bool on_bus = false;           ///< a NIC: its driver may keep a full ring of sent mbufs
    };

    explicit packet_pools(slot_pool_maker& maker) noexcept : maker_(maker) {}
    packet_pools(const packet_pools&) = delete;
    packet_pools& operator=(const packet_pools&) = delete;
    ~packet_pools() { let_go({}); }

    /// Makes all pools. Returns false, and sets rte_errno, without memory; throws what slot_pool_maker::make throws.
    bool make(const std::string& driver, const need& need);
    /// The pool for the driver's receive queue `queue`.
    rte_mempool* received(unsigned queue) const noexcept { return slot_pools_.empty() ? own_ : slot_pools_[queue]; }
    /// The pool of mbufs for frames that cannot be sent from where they lie. Each holds copy_bytes behind its headroom,
    /// or need::sent_bytes, headroom included, if that is more.
    rte_mempool* copies() const noexcept { return copies_; }
    /// Frees each pool, or leaves it behind while mbufs are held: freeing an mbuf of a freed pool would crash.
    void let_go(const std::string& device) noexcept;

 private:
    slot_pool_maker& maker_;
    std::string driver_;
    std::vector<rte_mempool*> slot_pools_; ///< one for each queue, if the driver takes slots
    rte_mempool *own_ = nullptr, *copies_ = nullptr;
};

} // namespace weftio::dpdk
