// Copies to and from a GPU while its kernels run.
#pragma once

#include <atomic>
#include <memory>

#include "devices/cuda/cuda_device.hpp"

namespace weftio::devices::cuda {

/// Copies in a stream of its own, by unified addresses: the driver knows whose memory each is. Behind each batch the
/// stream writes the batch's number to pinned memory, so that completed() costs a load.
class copies final : public copy_queue {
 public:
    /// @pre the context of `owner` is current. Throws weftio::error.
    explicit copies(std::shared_ptr<cuda_device> owner);
    copies(const copies&) = delete;
    copies& operator=(const copies&) = delete;
    ~copies() override;

    void copy(void* to, const void* from, const rows& rows) noexcept override;
    bool try_copy(void* to, const void* from, std::size_t bytes, direction which) noexcept override;
    void fill(void* to, std::uint32_t pattern, std::size_t bytes) noexcept override;
    void mark(std::uint32_t number) noexcept override;
    std::uint32_t completed() const noexcept override;
    bool failed() const noexcept override { return failed_.load(std::memory_order_relaxed); }

 private:
    /// Returns whether the GPU still works.
    bool works(const current_context& now) noexcept;
    void note_status(result status) noexcept;

    std::shared_ptr<cuda_device> owner_;
    const driver& cuda_;
    stream stream_ = nullptr;
    device_backend::allocation completed_;
    std::atomic<bool> failed_{false};
};

} // namespace weftio::devices::cuda
