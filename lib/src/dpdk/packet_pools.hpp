// The mbufs of a port: what its driver fills, and what is sent instead of frames that cannot be lent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct rte_mempool;

namespace weftio::nic {

constexpr std::uint16_t copy_bytes = 16384;       ///< the longest frame there is
constexpr std::uint16_t tagged_header_bytes = 22; ///< before its packet: Ethernet and two VLAN tags
constexpr std::uint16_t least_mtu = 68, most_mtu = copy_bytes - tagged_header_bytes; ///< the first is that of IPv4

/// Lends memory of kernels to a driver, as mbufs: receiving without copying.
class slot_lender {
 public:
    virtual ~slot_lender() = default;
    /// Whether `driver` may borrow.
    virtual bool suits(const std::string& driver) const noexcept = 0;
    /// What the driver's receive queue `queue` takes mbufs from. `name` is a name of its own; when nothing can be lent
    /// the mbufs come from `own`, whose packets hold `room_bytes`. Throws weftio::error errc::out_of_memory.
    virtual rte_mempool* lend(unsigned queue, const std::string& name, rte_mempool* own, std::uint16_t room_bytes) = 0;
    /// The driver has gone, and with it its queues.
    virtual void end() noexcept = 0;
};

/// Not for several threads.
class packet_pools {
 public:
    struct need {
        int socket = 0;
        unsigned queues = 1;
        std::uint32_t frame_bytes = 0; ///< the longest that the driver writes into one mbuf, 0: as DPDK's default
        bool on_bus = false;           ///< the driver may keep a ring full of sent mbufs
    };

    explicit packet_pools(slot_lender& lender) noexcept : lender_(lender) {}
    packet_pools(const packet_pools&) = delete;
    packet_pools& operator=(const packet_pools&) = delete;
    ~packet_pools() { let_go({}); }

    /// False, and rte_errno, without memory; throws what slot_lender::lend throws.
    bool make(const std::string& driver, const need& need);
    /// What the driver's receive queue `queue` is to be made with.
    rte_mempool* received(unsigned queue) const noexcept { return lent_.empty() ? own_ : lent_[queue]; }
    /// Mbufs for frames that cannot be sent from where they lie; each holds copy_bytes.
    rte_mempool* copies() const noexcept { return copies_; }
    /// Frees them, or leaves them behind: whoever frees an mbuf whose pool is gone crashes.
    void let_go(const std::string& device) noexcept;

 private:
    slot_lender& lender_;
    std::string driver_;
    std::vector<rte_mempool*> lent_; ///< one a queue, if the driver borrows
    rte_mempool *own_ = nullptr, *copies_ = nullptr;
};

} // namespace weftio::nic
