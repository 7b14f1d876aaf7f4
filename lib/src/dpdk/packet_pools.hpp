// The mbuf pools of a port: mbufs that its driver fills, and copies of frames that cannot be sent from where they lie.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct rte_mempool;

namespace weftio::dpdk {

constexpr std::uint16_t copy_bytes = 16384;       ///< longest frame that Weftio sends
constexpr std::uint16_t tagged_header_bytes = 22; ///< Ethernet header and two VLAN tags
constexpr std::uint16_t least_mtu = 68, most_mtu = copy_bytes - tagged_header_bytes; ///< the least is that of IPv4

/// Lends a driver memory that kernels read, as mbufs, so that nothing is copied on receive.
class slot_lender {
 public:
    virtual ~slot_lender() = default;
    /// Whether slots may be lent to `driver`.
    virtual bool suits(const std::string& driver) const noexcept = 0;
    /// The pool from which the driver's receive queue `queue` takes mbufs. `name` is unique. While nothing can be lent,
    /// the pool takes mbufs from `own`, whose mbufs hold `room_bytes`. Throws weftio::error errc::out_of_memory.
    virtual rte_mempool* lend(unsigned queue, const std::string& name, rte_mempool* own, std::uint16_t room_bytes) = 0;
    /// Call it when the driver and its queues are gone.
    virtual void end() noexcept = 0;
};

/// Not thread-safe.
class packet_pools {
 public:
    struct need {
        int socket = 0;
        unsigned queues = 1;
        std::uint32_t frame_bytes = 0; ///< most bytes that the driver writes into one mbuf; 0: DPDK's default
        bool on_bus = false;           ///< a NIC: its driver may keep a full ring of sent mbufs
    };

    explicit packet_pools(slot_lender& lender) noexcept : lender_(lender) {}
    packet_pools(const packet_pools&) = delete;
    packet_pools& operator=(const packet_pools&) = delete;
    ~packet_pools() { let_go({}); }

    /// Makes all pools. Returns false, and sets rte_errno, without memory; throws what slot_lender::lend throws.
    bool make(const std::string& driver, const need& need);
    /// The pool for the driver's receive queue `queue`.
    rte_mempool* received(unsigned queue) const noexcept { return lent_.empty() ? own_ : lent_[queue]; }
    /// The pool of mbufs for frames that cannot be sent from where they lie; each holds copy_bytes.
    rte_mempool* copies() const noexcept { return copies_; }
    /// Frees each pool, or leaves it behind while mbufs are held: freeing an mbuf of a freed pool would crash.
    void let_go(const std::string& device) noexcept;

 private:
    slot_lender& lender_;
    std::string driver_;
    std::vector<rte_mempool*> lent_; ///< one for each queue, if slots are lent to the driver
    rte_mempool *own_ = nullptr, *copies_ = nullptr;
};

} // namespace weftio::dpdk
