// A receive ring with a fake NIC; a kernel of the test receives from it.
#pragma once

#include <bit>
#include <cstdint>

#include "unit/device/fixture.hpp"
#include "weftio/device/eth_rxq.h"

namespace weftio::test {

/// Packet `index` is computed from its index alone. `start` is the first index: near 2^32 the indices wrap.
class played_nic {
 public:
    static constexpr std::uint32_t stride_bytes = 128;

    played_nic(const device& device, std::uint32_t depth, std::uint32_t start)
        : depth_(depth), next_(start),
          memory_(
              device.allocate(sizeof(layout) + depth * (sizeof(weftio_cqe) + stride_bytes), memory_kind::cpu_device))
    {
        for (std::uint32_t slot = 0; slot < depth; ++slot)
            completions()[slot].publication = WEFTIO_CQE_NEVER_WRITTEN << 24;
        weftio_dev_eth_rxq& rxq = ring().rxq;
        rxq.completions = {completions(), depth - 1, static_cast<std::uint32_t>(std::countr_zero(depth))};
        rxq.dbrec = &ring().dbrec;
        rxq.control = &ring().control;
        rxq.clock = device.clock();
        rxq.slots = slots();
        rxq.stride_bytes = rxq.slot_bytes = stride_bytes;
        rxq.received = rxq.released = start;
        rxq.abi = WEFTIO_DEV_ABI_ETH_RXQ;
        weftio_dev_post_receive(rxq.dbrec, start + depth);
    }

    weftio_dev_eth_rxq* handle() const { return &ring().rxq; }
    /// Number of free slots, which the kernel has released.
    std::uint32_t room() const { return (weftio_swap32(weftio_load_acquire_sys_u32(&ring().dbrec)) - next_) & 0xffff; }
    /// @pre room() > 0
    void publish()
    {
        std::uint32_t slot = next_ & (depth_ - 1);
        auto* words = reinterpret_cast<std::uint32_t*>(slots() + std::size_t{slot} * stride_bytes);
        words[0] = next_;
        words[stride_bytes / 4 - 1] = ~next_;
        weftio_cqe& entry = completions()[slot];
        entry.byte_count_be = weftio_swap32(stride_bytes);
        entry.timestamp_be = weftio_swap64(weftio_real_time_from_ns(next_));
        std::uint32_t pass = next_ >> std::countr_zero(depth_);
        weftio_store_release_sys_u32(&entry.publication,
                                     weftio_cqe_publication(next_, WEFTIO_CQE_OPCODE_RESPONDER_SEND, pass));
        ++next_;
    }
    /// Publishes `count` packets and waits for free slots. Returns whether the kernel released enough.
    bool publish(std::uint32_t count)
    {
        for (; count != 0; --count) {
            if (room() == 0 && !eventually([this] { return room() != 0; }))
                return false;
            publish();
        }
        return true;
    }

 private:
    struct layout {
        weftio_dev_eth_rxq rxq;
        weftio_dev_control control;
        alignas(64) std::uint32_t dbrec;
    };

    layout& ring() const { return *static_cast<layout*>(memory_.cpu_address()); }
    weftio_cqe* completions() const { return reinterpret_cast<weftio_cqe*>(&ring() + 1); }
    std::uint8_t* slots() const { return reinterpret_cast<std::uint8_t*>(completions() + depth_); }

    std::uint32_t depth_, next_;
    memory memory_;
};

} // namespace weftio::test
