// Files in memory that the CPU cannot access: they are read and written through slots of host memory and a copy engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "devices/backend.hpp"
#include "nic/soft/work/by_device.hpp"
#include "nic/soft/work/copy_stream.hpp"

namespace weftio::nic::soft {

/// The copy engine of one device, and its staging slots in host memory. Belongs to one engine.
class staging_stream {
 public:
    static constexpr std::uint32_t slots = 32, slot_bytes = 256 * 1024;

    /// @param memory  slots x slot_bytes, accessible by the CPU and the copy engine
    staging_stream(std::shared_ptr<devices::copy_queue> copies, std::shared_ptr<const devices::memory_block> memory)
        : memory_(std::move(memory)), copies_(std::move(copies))
    {
        for (std::uint32_t slot = slots; slot-- > 0;)
            free_.push_back(static_cast<std::byte*>(memory_->at.cpu) + std::size_t{slot} * slot_bytes);
    }

    /// Takes a free slot. nullptr: none is free.
    std::byte* take() noexcept
    {
        if (free_.empty())
            return nullptr;
        std::byte* const slot = free_.back();
        free_.pop_back();
        return slot;
    }
    void give_back(std::byte* slot) noexcept { free_.push_back(slot); } // the capacity was reserved by the constructor
    copy_stream& copies() noexcept { return copies_; }
    const copy_stream& copies() const noexcept { return copies_; }
    void end_batch() noexcept { copies_.end_batch(); }

 private:
    const std::shared_ptr<const devices::memory_block> memory_;
    std::vector<std::byte*> free_;
    copy_stream copies_; ///< declared last: its copies end before the memory goes
};

using staging_streams = by_device<staging_stream>;

} // namespace weftio::nic::soft
