// What the memory of rings of every kind has: the ring, its handle and its control block, and which ring of the queue
// they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "nic/backend.hpp"
#include "weftio/device.hpp"
#include "weftio/memory.hpp"

namespace weftio::queues {

/// Of rings, handles, marks and control lines: two cache lines, which are fetched together. A page for each, as
/// allocate() gives by default, would be much of a small queue.
inline constexpr std::size_t small_alignment = 128;

template <class T>
T* at(void* base, std::size_t offset)
{
    return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

/// A weftio_dev_control, which several rings may share: a kernel that gets them as one argument is stopped by it.
using control_block = std::shared_ptr<const memory>;

inline control_block make_control(const device& device)
{
    return std::make_shared<const memory>(
        device.allocate(sizeof(weftio_dev_control), memory_kind::cpu_device, small_alignment));
}

/// One life of a ring, from one reset of its queue to the next: memory that a running kernel keeps alive (a lifeline).
/// A kind of ring adds begin(), which initializes the ring and returns what the NIC needs of it, and the contents of
/// its handle. @tparam Handle  what kernels read  @tparam Queue  the queue at its NIC
template <class Handle, class Queue>
class ring_life : public devices::lifeline {
 public:
    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_->cpu_address());
    }
    const devices::device_backend& backend() const noexcept override { return detail::internals::backend(where_); }
    std::string describe() const override { return queue_->describe(ring_number_); }
    void quiesce() override { queue_->stop(ring_number_); }

    /// Fills the handle that kernels read. @param ring_number  number of this ring at `queue`
    /// Throws what an upload to the device throws.
    void belong_to(std::shared_ptr<Queue> queue, std::uint32_t ring_number)
    {
        queue_ = std::move(queue);
        ring_number_ = ring_number;
        const Handle made = make_handle();
        handle_.upload(&made, sizeof made);
    }
    Handle* handle() const noexcept { return static_cast<Handle*>(handle_.device_address()); }

 protected:
    /// @param control  shared with other rings; nullptr: its own
    ring_life(const device& device, std::size_t ring_bytes, control_block control = {})
        : where_(device), ring_(device.allocate(ring_bytes, memory_kind::cpu_device, small_alignment)),
          control_(control ? std::move(control) : make_control(device)),
          handle_(device.allocate(sizeof(Handle), memory_kind::device, small_alignment))
    {}

    /// Part of the ring, as the CPU sees it.
    template <class T>
    T* cpu_at(std::size_t offset) const
    {
        return at<T>(ring_.cpu_address(), offset);
    }
    /// Part of the ring, as kernels see it.
    template <class T>
    T* device_at(std::size_t offset) const
    {
        return at<T>(ring_.device_address(), offset);
    }
    /// The same, as a NIC is told of it.
    nic::ring_memory memory_at(std::size_t offset) const { return {detail::internals::block(ring_), offset}; }
    /// @pre belong_to()
    const Queue& queue() const noexcept { return *queue_; }
    /// Fills in what handles of every kind have. @return the number of the queue
    template <class Part>
    std::uint32_t fill_in(Part& made, std::uint32_t abi) const
    {
        const nic::inline_turn turn = queue_->turn();
        made.abi = abi;
        made.control = static_cast<weftio_dev_control*>(control_->device_address());
        made.clock = where_.clock();
        made.turn = reinterpret_cast<std::uint64_t>(turn.turn);
        made.turn_context = reinterpret_cast<std::uint64_t>(turn.context);
        return queue_->number();
    }

    const device where_;
    const memory ring_;

 private:
    /// Called when the queue is known.
    virtual Handle make_handle() const = 0;

    const control_block control_;
    memory handle_;
    std::shared_ptr<Queue> queue_;
    std::uint32_t ring_number_ = 0; ///< number of ring_ at queue_
};

} // namespace weftio::queues
