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
    /// @param sees_frees  the cache hears of frees: devices::cuda::free_watch
    /// @throws weftio::error errc::invalid_argument it is no GPU of CUDA
    gpu_memory(const device& gpu, std::size_t budget_bytes, bool sees_frees);

    const std::string& name() const noexcept override { return name_; }
    const char* units() const noexcept override { return "blocks of 64 KiB"; }
    const char* setting() const noexcept override { return "budget_bytes of add_memory_of()"; }
    std::size_t budget_bytes() const noexcept override { return budget_; }
    std::size_t grain() const noexcept override { return 65536; }
    unsigned shift() const noexcept override { return 6; } // cuMemAlloc() aligns more
    bool is_gpu() const noexcept override { return true; }
    const char* staleness() const noexcept override { return sees_frees_ ? "seen_frees" : "buffer_id"; }
    unit unit_of(const range& bytes) const override;
    std::uint64_t frees_once_found(std::uint64_t then) const noexcept override;
    void prepare(const unit& allocation) const override;
    memory adopt(const range& bytes, const std::shared_ptr<draining>& drains) const override;

    int number() const noexcept { return cuda_.cuda_number(); }
    /// Some memory of its own.
    memory sample() const { return gpu_.allocate(256, memory_kind::device); }
    /// Whether the memory still is what was registered. Asks for its buffer ID, or for what cuMemMap() has mapped,
    /// unless nothing was freed unseen: by the device of the cache, if that has made it, or, where frees are seen, by
    /// anybody. Takes no lock of ours.
    /// @param pages  held by the caller
    bool is_current(node& pages) const noexcept;
    /// As devices::cuda::look_up().
    std::optional<devices::cuda::address_info> look_up(std::uintptr_t address) const
    {
        return devices::cuda::look_up(cuda_, address);
    }

    /// Its primary context, if it is that GPU's.
    std::uintptr_t primary_of(devices::cuda::device_number number) const noexcept
    {
        return number == this->number() ? reinterpret_cast<std::uintptr_t>(cuda_.primary()) : 0;
    }

 private:
    bool is_same(const node& pages) const noexcept;
    std::uint64_t unseen_frees() const noexcept;
    std::uint64_t begin_of_question() const noexcept;
    [[noreturn]] void refuse_maker(const devices::cuda::address_info& seen, std::uintptr_t address) const;
    [[noreturn]] void refuse_end(const range& bytes, const devices::cuda::address_info& first) const;

    const device gpu_;
    devices::cuda::cuda_device& cuda_;
    const std::shared_ptr<devices::device_backend> owner_; ///< the same
    const std::string name_;
    const std::size_t budget_;
    const bool sees_frees_;
};

} // namespace weftio::registrations
