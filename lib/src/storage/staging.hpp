// Buffers of the host's memory between a file and memory that it cannot reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "devices/backend.hpp"
#include "storage/registrations.hpp"

namespace weftio::storage {

/// Staging buffers for one device, or for memory of the host that O_DIRECT does not take. Belongs to one thread at a
/// time.
class staging {
 public:
    struct slot {
        devices::device_backend::allocation at;
        std::uint64_t registered = 0; ///< see place::registered
        std::byte* cpu() const noexcept { return static_cast<std::byte*>(at.cpu); }
    };

    /// @param device  nullptr: the host's own memory
    /// Throws weftio::error when the device has no copy engine.
    staging(registrations& rings, std::shared_ptr<devices::device_backend> device, std::size_t slot_bytes,
            std::size_t most);
    staging(const staging&) = delete;
    staging& operator=(const staging&) = delete;
    ~staging();

    const devices::device_backend* device() const noexcept { return device_.get(); }
    /// A free buffer, or another; nullptr: all are in use, or there is no memory.
    slot* take() noexcept;
    void give(slot* free) noexcept { free_.push_back(free); }
    /// Whether there is a buffer to wait for.
    bool has_any() const noexcept { return !slots_.empty(); }

    /// Begins a copy between a buffer and memory of the device. @return the batch that it is in
    std::uint64_t copy(void* to, const void* from, std::size_t bytes) noexcept;
    void end_batch() noexcept;
    bool completed(std::uint64_t batch) noexcept;
    bool failed() const noexcept { return copies_->failed(); }

 private:
    registrations& rings_;
    std::shared_ptr<devices::device_backend> device_;
    std::shared_ptr<devices::copy_queue> copies_;
    const std::size_t slot_bytes_, most_;
    std::vector<std::unique_ptr<slot>> slots_;
    std::vector<slot*> free_;
    bool begun_ = false;          ///< the present batch has copies
    std::uint64_t ended_ = 0;     ///< batches
    std::uint64_t completed_ = 0; ///< batches, as last seen
};

} // namespace weftio::storage
