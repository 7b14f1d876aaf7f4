// A fake NIC in the test: it fills slots, publishes completions and trusts the doorbell record.
#pragma once

#include <bit>
#include <cstdint>

#include "opencl_fixture.hpp"
#include "weftio/device/eth_rxq.h"

namespace weftio::test {

/// The NIC's side of one receive queue. Packet `index` is computed from its index alone, so that a kernel can check it.
class played_nic {
 public:
    static constexpr std::uint32_t stride = 128;

    played_nic(const std::shared_ptr<devices::device_backend>& device, std::uint32_t depth)
        : depth_(depth), handle_(device, 1), control_(device, 1), dbrec_(device, 1), entries_(device, depth),
          slots_(device, static_cast<std::size_t>(depth) * stride)
    {
        for (std::uint32_t slot = 0; slot < depth; ++slot)
            entries_[slot].publication = WEFTIO_CQE_NEVER_WRITTEN << 24;
        dbrec_[0] = weftio_swap32(depth & 0xffff);
        handle_[0].completions = {entries_.data(), depth - 1, static_cast<std::uint32_t>(std::countr_zero(depth))};
        handle_[0].dbrec = dbrec_.data();
        handle_[0].control = control_.data();
        handle_[0].clock = device->clock();
        handle_[0].slots = slots_.data();
        handle_[0].stride_bytes = handle_[0].slot_bytes = stride;
    }

    weftio_dev_eth_rxq* handle() const { return handle_.data(); }
    std::uint32_t produced() const { return produced_; }
    void stop() const { weftio_store_relaxed_u32(&control_.data()->abort, 1); }

    /// Number of free slots, which the kernel has released.
    std::uint32_t room() const
    {
        std::uint32_t posted = weftio_swap32(weftio_load_acquire_sys_u32(dbrec_.data()));
        return (posted - produced_) & 0xffff;
    }

    /// Receives `count` packets and waits for free slots. Returns whether there were enough within `patience`.
    bool receive(std::uint32_t count)
    {
        auto deadline = std::chrono::steady_clock::now() + patience;
        while (count != 0) {
            if (room() == 0) {
                if (std::chrono::steady_clock::now() > deadline)
                    return false;
                std::this_thread::yield();
                continue;
            }
            publish(produced_++);
            --count;
        }
        return true;
    }

    /// Waits until the kernel has released every slot. Returns whether it has within `patience`.
    bool drained() const
    {
        auto deadline = std::chrono::steady_clock::now() + patience;
        while (room() != depth_ && std::chrono::steady_clock::now() < deadline)
            std::this_thread::yield();
        return room() == depth_;
    }

 private:
    void publish(std::uint32_t index) const
    {
        std::uint32_t slot = index & (depth_ - 1);
        std::uint32_t bytes = 60 + index % 16 * 4;
        auto* words = reinterpret_cast<std::uint32_t*>(slots_.data() + static_cast<std::size_t>(slot) * stride);
        words[0] = index * 2654435761u;
        words[bytes / 4 - 1] = ~index;

        weftio_cqe& entry = entries_[slot];
        entry.byte_count_be = weftio_swap32(bytes);
        entry.timestamp_be = weftio_swap64(weftio_real_time_from_ns(5'000'000'000u + index));
        entry.hds_ip_ext = WEFTIO_CQE_L3_OK;
        weftio_store_release_sys_u32(&entry.publication,
                                     weftio_cqe_publication(index, WEFTIO_CQE_OPCODE_RESPONDER_SEND, index / depth_));
    }

    const std::uint32_t depth_;
    std::uint32_t produced_ = 0;
    array<weftio_dev_eth_rxq> handle_;
    array<weftio_dev_control> control_;
    array<std::uint32_t> dbrec_;
    array<weftio_cqe> entries_;
    array<std::uint8_t> slots_;
};

} // namespace weftio::test
