// Rings without a NIC: a thread of the benchmark is the fake NIC at the other end and does the minimum of a NIC's work.
#pragma once

#include <bit>
#include <cstring>
#include <vector>

#include "measure.hpp"
#include "weftio/device/eth_txq.h"

namespace weftio::bench {

/// Memory and control block of a queue; an argument of device::launch.
template <class Handle>
class fake_queue {
 public:
    Handle* handle() const { return static_cast<Handle*>(handle_.device_address()); }
    weftio_dev_control* control() const { return static_cast<weftio_dev_control*>(control_.cpu_address()); }

 protected:
    fake_queue(const device& device, std::size_t bytes, memory_kind place = memory_kind::cpu_device)
        : ring_(device.allocate(bytes, place)),
          control_(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device)),
          handle_(device.allocate(sizeof(Handle), memory_kind::device))
    {}
    template <class T>
    T* cpu(std::size_t offset) const
    {
        return reinterpret_cast<T*>(static_cast<std::byte*>(ring_.cpu_address()) + offset);
    }
    template <class T>
    T* kernel(std::size_t offset) const
    {
        return reinterpret_cast<T*>(static_cast<std::byte*>(ring_.device_address()) + offset);
    }

    memory ring_, control_, handle_;
};

/// A receive queue that one thread fills as fast as it can.
class fake_rxq : public fake_queue<weftio_dev_eth_rxq> {
 public:
    fake_rxq(const device& device, std::uint32_t depth, std::uint32_t stride)
        : fake_queue(device, depth * (sizeof(weftio_cqe) + stride) + 64), depth_(depth), stride_(stride)
    {
        for (std::uint32_t slot = 0; slot < depth; ++slot)
            cpu<weftio_cqe>(0)[slot].publication = WEFTIO_CQE_NEVER_WRITTEN << 24;
        weftio_dev_eth_rxq made{};
        made.completions = {kernel<weftio_cqe>(0), depth - 1, static_cast<std::uint32_t>(std::countr_zero(depth))};
        made.slots = kernel<weftio_u8>(depth * sizeof(weftio_cqe));
        made.dbrec = kernel<weftio_u32>(depth * (sizeof(weftio_cqe) + stride));
        made.control = static_cast<weftio_dev_control*>(control_.device_address());
        made.clock = device.clock();
        made.stride_bytes = stride;
        made.abi = WEFTIO_DEV_ABI_ETH_RXQ;
        handle_.upload(&made, sizeof made);
        weftio_dev_post_receive(dbrec(), depth);
    }
    /// Publishes one packet. @return false if the kernel holds every slot
    bool publish(const void* packet, std::uint32_t bytes)
    {
        if (free_ == 0)
            free_ = (weftio_swap32(weftio_load_acquire_sys_u32(dbrec())) - next_) & 0xffff;
        if (free_ == 0)
            return false;
        std::uint32_t slot = next_ & (depth_ - 1);
        if (packet)
            std::memcpy(slot_of(slot), packet, bytes);
        weftio_cqe& cqe = cpu<weftio_cqe>(0)[slot];
        cqe.byte_count_be = weftio_swap32(bytes);
        weftio_store_release_sys_u32(&cqe.publication, weftio_cqe_publication(next_, WEFTIO_CQE_OPCODE_RESPONDER_SEND,
                                                                              next_ >> std::countr_zero(depth_)));
        ++next_;
        --free_;
        return true;
    }
    /// Whether the slots of all published packets have been released.
    bool all_released() const
    {
        return ((weftio_swap32(weftio_load_acquire_sys_u32(dbrec())) - depth_ - next_) & 0xffff) == 0;
    }
    /// Whether `frame` is in the slot that was filled last.
    template <class Frame>
    bool last_is(const Frame& frame) const
    {
        return std::memcmp(slot_of((next_ - 1) & (depth_ - 1)), frame.data(), frame.size()) == 0;
    }

 private:
    std::byte* slot_of(std::uint32_t slot) const
    {
        return cpu<std::byte>(depth_ * sizeof(weftio_cqe) + std::size_t{slot} * stride_);
    }
    weftio_u32* dbrec() const { return cpu<weftio_u32>(depth_ * (sizeof(weftio_cqe) + stride_)); }

    std::uint32_t depth_, stride_, next_ = 0, free_ = 0;
};

/// A send queue whose entries are done as soon as they are committed.
class fake_txq : public fake_queue<weftio_dev_eth_txq> {
 public:
    /// @param place  of the ring; memory_kind::device: kernels complete the entries
    fake_txq(const device& device, std::uint32_t depth, memory_kind place = memory_kind::cpu_device)
        : fake_queue(device, depth * WEFTIO_WQE_BLOCK_BYTES + 192, place), depth_(depth),
          filled_(device.allocate(std::size_t{depth} * 4, memory_kind::device))
    {
        weftio_dev_eth_txq made{};
        made.queue.ring.segments = kernel<weftio_u32>(0);
        made.queue.ring.completion = kernel<weftio_cqe>(end());
        made.queue.ring.dbrec = kernel<weftio_u32>(end() + 64);
        made.queue.ring.doorbell = kernel<weftio_u64>(end() + 128);
        made.queue.ring.filled = static_cast<weftio_u32*>(filled_.device_address());
        made.queue.ring.mask = depth - 1;
        made.queue.control = static_cast<weftio_dev_control*>(control_.device_address());
        made.queue.clock = device.clock();
        made.queue.abi = WEFTIO_DEV_ABI_ETH_TXQ;
        handle_.upload(&made, sizeof made);
        std::vector<std::byte> none_done(std::size_t{depth} * WEFTIO_WQE_BLOCK_BYTES + 192);
        auto* const first = reinterpret_cast<weftio_cqe*>(none_done.data() + end());
        first->publication = weftio_cqe_publication(0xffff, WEFTIO_CQE_OPCODE_REQUESTER, 0);
        ring_.upload(none_done.data(), none_done.size());
    }
    /// Completes all committed entries. @return the number of entries completed
    std::uint32_t turn()
    {
        std::uint32_t ready = weftio_swap32(weftio_load_acquire_sys_u32(cpu<weftio_u32>(end() + 64)));
        std::uint32_t entries = (ready - seen_) & 0xffff;
        if (entries == 0)
            return 0;
        seen_ = ready;
        complete(ready - 1);
        return entries;
    }
    weftio_u32* words() const { return kernel<weftio_u32>(0); }

 private:
    std::size_t end() const { return std::size_t{depth_} * WEFTIO_WQE_BLOCK_BYTES; }
    void complete(std::uint32_t last)
    {
        weftio_store_release_sys_u32(&cpu<weftio_cqe>(end())->publication,
                                     weftio_cqe_publication(last, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    }

    std::uint32_t depth_, seen_ = 0;
    memory filled_;
};

/// Calls `turn` repeatedly in a thread until the object is destroyed.
template <class Turn>
class repeating_thread {
 public:
    explicit repeating_thread(Turn turn)
        : thread_([turn, this] {
              while (!ending_.load(std::memory_order_relaxed))
                  turn();
          })
    {}
    ~repeating_thread()
    {
        ending_ = true;
        thread_.join();
    }

 private:
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

} // namespace weftio::bench
