// Frames in memory that the CPU does not see: a copy engine of the device brings them to host memory, from where drivers
// take them.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dpdk/wire.hpp"
#include "nic/soft/send/send_headers.hpp"
#include "nic/soft/work/by_device.hpp"
#include "nic/soft/work/copy_lane.hpp"

namespace weftio::nic::soft {

/// The copy engine of one device, and slots of host memory to which it brings frames. Belongs to one sender; its queues
/// share it. A slot is taken from begin() until the frame is whole, and the driver has given its mbuf back.
class pull_lane {
 public:
    static constexpr std::uint32_t slots = 256, slot_bytes = 16384;

    /// @param memory  slots x slot_bytes, as the port takes it up
    pull_lane(std::shared_ptr<devices::copy_queue> copies, memory_place memory, send_pool& pool);
    pull_lane(const pull_lane&) = delete;
    pull_lane& operator=(const pull_lane&) = delete;
    ~pull_lane();

    /// Begins a frame of `bytes` bytes, at most slot_bytes. nullptr: no slot is free now.
    rte_mbuf* begin(std::uint32_t bytes) noexcept;
    /// The first byte of the frame.
    static std::byte* bytes_of(const rte_mbuf& frame) noexcept { return static_cast<std::byte*>(frame.buf_addr); }
    /// Has bytes of the device's memory brought into the frame, at `to`. Frames of equal length that follow each other
    /// in slots, and lie at equal distances there, share one copy: a copy takes as long to start as many frames.
    void bring(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
    /// All bytes of the frame have been brought or written. @param cs_flags  of its entry: filled in when it is whole
    void end(const rte_mbuf& frame, std::uint32_t bytes, std::uint8_t cs_flags) noexcept;
    /// What turns do at their end: copies that have begun become a batch.
    void end_batch() noexcept;

    /// Returns what the driver is to be given of a frame that was begun here, or of any other: its mbuf, once all bytes
    /// are there. Where the driver cannot read the slot that is a copy of it, and the slot is free again. nullptr: not
    /// yet.
    rte_mbuf* whole(rte_mbuf* frame, const dpdk::wire& wire) noexcept;
    /// As for a driver that cannot read the slots. For tests.
    void copy_whole_frames() noexcept { memory_.front().zero_copy = false; }
    /// Looks at every slot.
    std::uint32_t free_slots() noexcept;
    bool failed() const noexcept { return lane_.failed(); }
    /// Batches: see copy_lane.
    std::uint64_t ended() const noexcept { return lane_.ended(); }
    bool landed(std::uint64_t batch) noexcept { return lane_.landed(batch); }

 private:
    struct slot {
        std::uint64_t batch = 0; ///< that brings its last bytes; 0: they are there
        std::uint32_t bytes = 0; ///< of the frame, without its padding
        std::uint8_t cs_flags = 0;
    };
    /// Bytes of frames, one in each row.
    struct run {
        std::byte* to = nullptr;
        const std::byte* from = nullptr;
        devices::copy_queue::rows shape{};
    };
    bool joins(const std::byte* to, const std::byte* from, std::size_t bytes) const noexcept;
    void start_run() noexcept;
    bool is_here(const rte_mbuf& frame) const noexcept;
    slot& slot_of(const rte_mbuf& frame) noexcept;
    bool is_free(std::uint32_t number) noexcept;

    memory_place memory_;
    send_pool& pool_;
    std::vector<slot> slots_;
    std::unique_ptr<send_header[]> headers_;
    std::uint32_t next_ = 0; ///< slot to look at first
    run run_{};              ///< that has not been started
    copy_lane lane_;         ///< declared last: its copies end before the memory goes
};

using pull_lanes = by_device<pull_lane>;

} // namespace weftio::nic::soft
