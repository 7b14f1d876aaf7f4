// The NIC's side of one receive queue, without a NIC: fills slots, publishes completions, reads the doorbell record.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "patience.hpp"
#include "weftio/device.hpp"
#include "weftio/device/eth_rxq.h"

namespace weftio::test {

/// A receive ring and the NIC that fills it, in memory that the CPU and kernels reach at the same address. The content
/// of packet `index` is computed from its index alone, so that a kernel can check it. One thread publishes.
class fake_nic {
 public:
    static constexpr std::uint32_t stride_bytes = 128;

    /// Bytes of memory for a ring of `depth` slots.
    static constexpr std::size_t bytes_for(std::uint32_t depth)
    {
        return sizeof(layout) + std::size_t{depth} * (sizeof(weftio_cqe) + stride_bytes);
    }

    /// @param memory  `bytes_for(depth)` zero bytes at a multiple of 64, which the NIC keeps
    /// @param start   the first index: near 2^32 the indices wrap
    fake_nic(std::shared_ptr<void> memory, const weftio_dev_clock* clock, std::uint32_t depth, std::uint32_t start = 0)
        : memory_(std::move(memory)), depth_(depth), next_(start)
    {
        for (std::uint32_t slot = 0; slot < depth; ++slot)
            completions()[slot].publication = WEFTIO_CQE_NEVER_WRITTEN << 24;
        weftio_dev_eth_rxq& rxq = ring().rxq;
        rxq.completions = {completions(), depth - 1, static_cast<std::uint32_t>(std::countr_zero(depth))};
        rxq.dbrec = &ring().dbrec;
        rxq.control = &ring().control;
        rxq.clock = clock;
        rxq.slots = slots();
        rxq.stride_bytes = rxq.slot_bytes = stride_bytes;
        rxq.received = rxq.released = start;
        rxq.abi = WEFTIO_DEV_ABI_ETH_RXQ;
        weftio_dev_post_receive(rxq.dbrec, start + depth);
    }
    /// The same in memory of `device`.
    fake_nic(const device& device, std::uint32_t depth, std::uint32_t start)
        : fake_nic(shared(device.allocate(bytes_for(depth), memory_kind::cpu_device)), device.clock(), depth, start)
    {}

    static std::uint32_t bytes_of(std::uint32_t index) { return 60 + index % 16 * 4; }
    static std::uint32_t first_word_of(std::uint32_t index) { return index * 2654435761u; }
    static std::uint32_t last_word_of(std::uint32_t index) { return ~index; }
    static std::uint64_t time_ns_of(std::uint32_t index) { return 5'000'000'000u + index; }

    weftio_dev_eth_rxq* handle() const { return &ring().rxq; }
    /// Aborts the kernel's receive calls.
    void stop() const { weftio_store_relaxed_u32(&ring().control.abort, 1); }
    /// Number of slots that the kernel has released and that hold no packet.
    std::uint32_t free_slots() const
    {
        return (weftio_swap32(weftio_load_acquire_sys_u32(&ring().dbrec)) - next_) & 0xffff;
    }
    /// Waits until the kernel has released every slot. Returns whether it has within `patience`.
    bool drained() const
    {
        return eventually([this] { return free_slots() == depth_; });
    }
    /// Publishes `count` packets and waits for free slots. Returns whether enough were free within `patience`.
    bool publish(std::uint32_t count)
    {
        for (; count != 0; --count) {
            if (free_slots() == 0 && !eventually([this] { return free_slots() != 0; }))
                return false;
            publish_one();
        }
        return true;
    }

 private:
    struct layout {
        weftio_dev_eth_rxq rxq;
        weftio_dev_control control;
        alignas(64) std::uint32_t dbrec;
    };

    static std::shared_ptr<void> shared(memory made)
    {
        auto owner = std::make_shared<memory>(std::move(made));
        return {owner, owner->cpu_address()};
    }
    layout& ring() const { return *static_cast<layout*>(memory_.get()); }
    weftio_cqe* completions() const { return reinterpret_cast<weftio_cqe*>(&ring() + 1); }
    std::uint8_t* slots() const { return reinterpret_cast<std::uint8_t*>(completions() + depth_); }

    /// @pre free_slots() > 0
    void publish_one()
    {
        const std::uint32_t slot = next_ & (depth_ - 1), bytes = bytes_of(next_);
        auto* words = reinterpret_cast<std::uint32_t*>(slots() + std::size_t{slot} * stride_bytes);
        words[0] = first_word_of(next_);
        words[bytes / 4 - 1] = last_word_of(next_);
        weftio_cqe& entry = completions()[slot];
        entry.byte_count_be = weftio_swap32(bytes);
        entry.timestamp_be = weftio_swap64(weftio_real_time_from_ns(time_ns_of(next_)));
        entry.hds_ip_ext = WEFTIO_CQE_L3_OK;
        const std::uint32_t pass = next_ >> std::countr_zero(depth_);
        weftio_store_release_sys_u32(&entry.publication,
                                     weftio_cqe_publication(next_, WEFTIO_CQE_OPCODE_RESPONDER_SEND, pass));
        ++next_;
    }

    std::shared_ptr<void> memory_;
    std::uint32_t depth_, next_;
};

} // namespace weftio::test
