// A send ring without a NIC: a thread of the test reads every entry as soon as the doorbell record names it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "publication_kernels.h"
#include "weftio/device.hpp"

namespace weftio::test {

/// The handle and memory of the queue; an argument of device::launch.
class checked_ring {
 public:
    static constexpr std::uint32_t queue = 0x1234;

    /// @param start  index of the first entry
    checked_ring(const device& device, std::uint32_t depth, std::uint32_t start)
        : depth_(depth), ring_(device.allocate(depth * WEFTIO_WQE_BLOCK_BYTES + 192, memory_kind::cpu_device)),
          control_(device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device)),
          filled_(device.allocate(std::size_t{depth} * 4, memory_kind::device)),
          handle_(device.allocate(sizeof(weftio_dev_eth_txq), memory_kind::device)), next_(start)
    {
        weftio_dev_eth_txq made{};
        weftio_dev_send_ring& ring = made.queue.ring;
        ring.segments = at<weftio_u32>(ring_.device_address(), 0);
        ring.completion = at<weftio_cqe>(ring_.device_address(), end());
        ring.dbrec = at<weftio_u32>(ring_.device_address(), end() + 64);
        ring.doorbell = at<weftio_u64>(ring_.device_address(), end() + 128);
        ring.filled = static_cast<weftio_u32*>(filled_.device_address());
        ring.mask = depth - 1;
        ring.queue = queue;
        ring.ready = ring.reserved = ring.asked = ring.completed = start;
        made.queue.control = static_cast<weftio_dev_control*>(control_.device_address());
        made.queue.clock = device.clock();
        made.queue.abi = WEFTIO_DEV_ABI_ETH_TXQ;
        handle_.upload(&made, sizeof made);
        weftio_store_relaxed_u32(dbrec(), weftio_swap32(start & 0xffff));
        complete(start - 1);
    }

    weftio_dev_eth_txq* handle() const { return static_cast<weftio_dev_eth_txq*>(handle_.device_address()); }
    weftio_dev_control* control() const { return static_cast<weftio_dev_control*>(control_.cpu_address()); }

    /// Reads the entries that are new, then completes them. @return how many there were
    std::uint32_t turn(std::vector<std::uint8_t>& seen)
    {
        const std::uint32_t ready = weftio_swap32(weftio_load_acquire_sys_u32(dbrec()));
        const std::uint32_t count = (ready - next_) & 0xffff;
        if (count > depth_)
            note(fmt::format("the record names {} entries of {}", count, depth_));
        for (std::uint32_t done = 0; done < count; ++done)
            read(next_ + done, seen);
        next_ += count;
        if (count)
            complete(next_ - 1);
        return count;
    }
    /// The first thing that was wrong, or nothing.
    const std::string& wrong() const { return wrong_; }
    bool was_rung() const { return weftio_load_acquire_sys_u64(at<weftio_u64>(ring_.cpu_address(), end() + 128)) != 0; }

 private:
    template <class T>
    static T* at(void* memory, std::size_t offset)
    {
        return reinterpret_cast<T*>(static_cast<std::byte*>(memory) + offset);
    }
    std::size_t end() const { return std::size_t{depth_} * WEFTIO_WQE_BLOCK_BYTES; }
    weftio_u32* dbrec() const { return at<weftio_u32>(ring_.cpu_address(), end() + 64); }
    void complete(std::uint32_t last)
    {
        auto* const completion = at<weftio_cqe>(ring_.cpu_address(), end());
        weftio_store_release_sys_u64(&completion->timestamp_be, weftio_swap64(std::uint64_t{1} << 32));
        weftio_store_release_sys_u32(&completion->publication,
                                     weftio_cqe_publication(last, WEFTIO_CQE_OPCODE_REQUESTER, 0));
    }
    void note(std::string what)
    {
        if (wrong_.empty())
            wrong_ = std::move(what);
    }
    void read(std::uint32_t index, std::vector<std::uint8_t>& seen)
    {
        std::array<std::uint32_t, 16> words;
        std::memcpy(words.data(), at<std::byte>(ring_.cpu_address(), (index & (depth_ - 1)) * WEFTIO_WQE_BLOCK_BYTES),
                    sizeof words);
        const std::uint64_t number = (std::uint64_t{weftio_swap32(words[10])} << 32 | weftio_swap32(words[11])) - 1;
        if (weftio_swap32(words[0]) != ((index & 0xffff) << 8 | WEFTIO_OPCODE_SEND) ||
            weftio_swap32(words[1]) != (queue << 8 | 3))
            note(fmt::format("entry {:#x} begins with {:08x} {:08x}", index, weftio_swap32(words[0]),
                             weftio_swap32(words[1])));
        else if (weftio_swap32(words[8]) != 64 || number >= seen.size())
            note(fmt::format("entry {:#x} names {} bytes of frame {}", index, weftio_swap32(words[8]), number));
        else if (seen[number]++ != 0)
            note(fmt::format("entry {:#x} names frame {} again", index, number));
    }

    std::uint32_t depth_;
    memory ring_, control_, filled_, handle_;
    std::uint32_t next_;
    std::string wrong_;
};

/// Posts from all lanes of a grid, and checks what arrives. @return what was wrong, or nothing
template <class Kernel>
std::string play_publications(const device& device, const Kernel& kernel, grid shape, std::uint32_t depth,
                              std::uint32_t start, std::uint32_t rounds, std::chrono::nanoseconds patience)
{
    checked_ring ring(device, depth, start);
    memory tallies = device.allocate(sizeof(publication_tally) * shape.blocks, memory_kind::cpu_device);
    std::vector<std::uint8_t> seen(std::size_t{shape.blocks} * shape.lanes * rounds);
    running_kernel running =
        device.launch(kernel, shape, ring, static_cast<publication_tally*>(tallies.device_address()), rounds, start);
    const auto end = std::chrono::steady_clock::now() + patience;
    std::mt19937 random(start);
    std::size_t arrived = 0;
    while (arrived < seen.size() && std::chrono::steady_clock::now() < end) {
        const std::uint32_t count = ring.turn(seen);
        arrived += count;
        if (count == 0 || random() % 64 == 0)
            std::this_thread::yield();
    }
    if (!running.wait_for(patience))
        return fmt::format("{} of {} entries have arrived; {}", arrived, seen.size(), ring.wrong());
    const auto* const of_blocks = static_cast<const publication_tally*>(tallies.cpu_address());
    for (std::uint32_t block = 0; block < shape.blocks; ++block)
        if (of_blocks[block].wrong)
            return fmt::format("block {}: {} calls had another status", block, of_blocks[block].wrong);
    return ring.was_rung() ? ring.wrong() : "nobody rang";
}

} // namespace weftio::test
