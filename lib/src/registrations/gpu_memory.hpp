// The memory of one GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "devices/cuda/addresses.hpp"
#include "registrations/memory_source.hpp"

namespace weftio::registrations {

/// Allocations of one GPU. A mapping of cuMemMap() is an allocation.
class gpu_memory final : public memory_source {
 public:
    /// @param budget_bytes  0: three quarters of the free BAR1
    /// @throws weftio::error errc::invalid_argument it is no GPU of CUDA
    gpu_memory(const device& gpu, std::size_t budget_bytes);

    const std::string& name() const noexcept override { return name_; }
    const char* units() const noexcept override { return "blocks of 64 KiB"; }
    const char* setting() const noexcept override { return "budget_bytes of add_memory_of()"; }
    std::size_t budget_bytes() const noexcept override { return budget_; }
    std::size_t grain() const noexcept override { return 65536; }
    unsigned shift() const noexcept override { return 6; } // cuMemAlloc() aligns more
    bool is_gpu() const noexcept override { return true; }
    unit unit_of(const range& bytes) const override;
    void prepare(const unit& allocation) const override;
    memory adopt(const range& bytes, const std::shared_ptr<draining>& drains) const override;

    int number() const noexcept { return cuda_.cuda_number(); }
    /// Some memory of its own.
    memory sample() const { return gpu_.allocate(256, memory_kind::device); }
    /// Whether the memory still is what was registered. Asks for its buffer ID, or for what cuMemMap() has mapped,
    /// unless the device of the cache has made it and has freed nothing meanwhile. Takes no lock of ours.
    /// @param pages  held by the caller
    bool is_current(node& pages) const noexcept;
    /// As devices::cuda::look_up().
    std::optional<devices::cuda::address_info> look_up(std::uintptr_t address) const
    {
        return devices::cuda::look_up(cuda_, address);
    }

 private:
    [[noreturn]] void refuse_maker(const devices::cuda::address_info& seen, std::uintptr_t address) const;
    [[noreturn]] void refuse_end(const range& bytes, const devices::cuda::address_info& first) const;

    const device gpu_;
    devices::cuda::cuda_device& cuda_;
    const std::shared_ptr<devices::device_backend> owner_; ///< the same
    const std::string name_;
    const std::size_t budget_;
};

} // namespace weftio::registrations
