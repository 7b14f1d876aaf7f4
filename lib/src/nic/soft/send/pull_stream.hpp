// Frames in memory that the CPU cannot access: the device's copy engine copies them to host memory, where drivers read
// them.
#pragma once

#include <rte_mbuf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dpdk/port_queue.hpp"
#include "nic/soft/send/send_headers.hpp"
#include "nic/soft/work/by_device.hpp"
#include "nic/soft/work/copy_stream.hpp"

namespace weftio::nic::soft {

/// The copy engine of one device, and slots of host memory to which it copies frames. Belongs to one sender, whose
/// queues share it. A slot is in use from begin() until the frame is complete and the driver has returned its mbuf.
class pull_stream {
 public:
    static constexpr std::uint32_t slots = 256, slot_bytes = 16384;

    /// @param memory  slots x slot_bytes, as the port registers it
    pull_stream(std::shared_ptr<devices::copy_queue> copies, frame_memory_list memory, send_pool& pool);
    pull_stream(const pull_stream&) = delete;
    pull_stream& operator=(const pull_stream&) = delete;
    ~pull_stream();

    /// Starts a frame of `bytes` bytes, at most slot_bytes. nullptr: no slot is free now.
    rte_mbuf* begin(std::uint32_t bytes) noexcept;
    /// The first byte of the frame.
    static std::byte* bytes_of(const rte_mbuf& frame) noexcept { return static_cast<std::byte*>(frame.buf_addr); }
    /// Copies bytes from the device's memory to `to` in the frame. Frames of equal length in consecutive slots, from
    /// addresses at equal distances, share one copy, because starting a copy takes as long as copying many frames.
    void bring(std::byte* to, const std::byte* from, std::size_t bytes) noexcept;
    /// All pieces of the frame have been written, or their copy was requested. @param cs_flags  of its entry; the
    /// checksums are filled in when the frame is complete
    void end(const rte_mbuf& frame, std::uint32_t bytes, std::uint8_t cs_flags) noexcept;
    /// Called at the end of a turn: the copies started since the last call become a batch.
    void end_batch() noexcept;

    /// Returns the mbuf to give to the driver, or nullptr if bytes of the frame are still missing. If the driver cannot
    /// read the slot, the mbuf is a copy, and the slot becomes free. A frame that was not begun here is returned as it
    /// is.
    rte_mbuf* whole(rte_mbuf* frame, const dpdk::port_queue& port_queue) noexcept;
    /// Acts as if the driver could not read the slots. For tests.
    void copy_whole_frames() noexcept { memory_.front().zero_copy = false; }
    /// Counts the free slots; checks every slot.
    std::uint32_t free_slots() noexcept;
    bool failed() const noexcept { return stream_.failed(); }
    /// Numbers of batches: see copy_stream.
    std::uint64_t ended() const noexcept { return stream_.ended(); }
    bool completed(std::uint64_t batch) noexcept { return stream_.completed(batch); }
    bool is_over(std::uint64_t batch) const noexcept { return stream_.is_over(batch); }

 private:
    struct slot {
        std::uint64_t batch = 0; ///< batch with its last bytes; 0: they have arrived
        std::uint32_t bytes = 0; ///< length of the frame without padding
        std::uint8_t cs_flags = 0;
    };
    /// Consecutive bring() calls that become one copy: each is one row.
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

    frame_memory_list memory_;
    send_pool& pool_;
    std::vector<slot> slots_;
    std::unique_ptr<send_header[]> headers_;
    std::uint32_t next_ = 0; ///< slot to try first
    run run_{};              ///< not started yet
    copy_stream stream_;     ///< declared last: its copies end before the memory goes
};

using pull_streams = by_device<pull_stream>;

} // namespace weftio::nic::soft
