// A fake device whose memory only the test can access by the CPU, and whose copy engine the test runs.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "devices/unfinished_copies.hpp"
#include "regions/named_region.hpp"
#include "unit/device/slow_copies.hpp"
#include "weftio/memory.hpp"

namespace weftio::test {

class fake_gpu final : public devices::device_backend {
 public:
    /// @param cuda_number  number of the GPU that the device pretends to be; -1: none
    explicit fake_gpu(int cuda_number = -1) : cuda_number_(cuda_number) {}
    const std::string& name() const noexcept override { return name_; }
    int cuda_number() const noexcept override { return cuda_number_; }
    /// Allocates host memory, which copy engines and NICs can both access.
    allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind) override
    {
        void* const made = std::aligned_alloc(alignment, bytes);
        return {.cpu = made, .device = made};
    }
    void release(const allocation& allocation, memory_kind) noexcept override { std::free(allocation.cpu); }
    std::shared_ptr<devices::copy_queue> make_copy_queue(std::shared_ptr<device_backend>) override { return copies; }
    std::shared_ptr<devices::running_backend> launch(const devices::launch_request&,
                                                     std::shared_ptr<device_backend>) override
    {
        return nullptr;
    }
    const weftio_dev_clock* clock() const noexcept override { return nullptr; }

    const std::shared_ptr<slow_copies> copies = std::make_shared<slow_copies>();

 private:
    const std::string name_ = "far";
    const int cuda_number_;
};

/// Memory of the fake device, and a model of its expected content.
class fake_gpu_memory {
 public:
    /// @param user  a port, a DMA engine or a file engine  @param unfinished  see memory_block
    template <class User>
    fake_gpu_memory(const User& user, const std::shared_ptr<fake_gpu>& device, std::size_t bytes,
                    std::shared_ptr<devices::unfinished_copies> unfinished = {})
        : model(bytes), bytes_(bytes), block_(std::make_shared<devices::memory_block>(device))
    {
        block_->at.device = bytes_.data();
        block_->bytes = bytes;
        block_->kind = memory_kind::device;
        block_->adopted = true;
        block_->unfinished = std::move(unfinished);
        region_.emplace(block_, regions::region_use::entries, region_options{});
        if constexpr (requires { *detail::internals::backend(user); })
            region_->register_with(*detail::internals::backend(user));
        else
            region_->register_with(detail::internals::backend(user));
    }
    weftio_dev_buf buffer() const
    {
        return {reinterpret_cast<weftio_u8*>(block_->at.device), static_cast<weftio_u32>(bytes_.size()),
                weftio_swap32(region_->lkey())};
    }
    std::uint32_t lkey() const { return region_->lkey(); }
    /// The bytes, for writes in place of a kernel.
    std::byte* bytes() { return bytes_.data(); }
    bool as_modelled() const { return bytes_ == model; }
    /// Destroys the region.
    void end() { region_.reset(); }

    std::vector<std::byte> model;

 private:
    std::vector<std::byte> bytes_;
    std::shared_ptr<devices::memory_block> block_;
    std::optional<regions::named_region> region_;
};

} // namespace weftio::test
