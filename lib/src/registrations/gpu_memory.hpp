// The memory of one GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "devices/cuda/cuda_device.hpp"
#include "registrations/memory_source.hpp"

namespace weftio::registrations {

/// Who has made memory of a GPU.
enum class gpu_maker : std::uint8_t { mem_alloc, mem_map, pool, unknown };

/// What the driver says of an address.
struct gpu_address {
    gpu_maker maker = gpu_maker::mem_alloc;
    unsigned type = 0; ///< devices::cuda::memory_type_host, or a device's
    bool managed = false;
    int gpu = 0; ///< N of cuda:N
    unit allocation{};
};

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
    /// Nothing: no driver knows the address. Throws weftio::error errc::device_error.
    std::optional<gpu_address> look_up(std::uintptr_t address) const;

 private:
    /// What cuMemMap() has mapped at an address, as a whole.
    struct mapping {
        range bytes;
        std::uint64_t block = 0;

        friend bool operator==(const mapping&, const mapping&) = default;
    };

    template <class T>
    devices::cuda::result try_to_ask(T& value, devices::cuda::pointer_attribute attribute,
                                     std::uintptr_t address) const noexcept;
    std::optional<mapping> mapping_at(std::uintptr_t address) const noexcept;
    bool see_mapping(gpu_address& seen, std::uintptr_t address) const;
    [[noreturn]] void refuse_maker(const gpu_address& seen, std::uintptr_t address) const;
    template <class T>
    bool ask(T& value, devices::cuda::pointer_attribute attribute, std::uintptr_t address) const;
    [[noreturn]] void refuse_end(const range& bytes, const gpu_address& first) const;

    const device gpu_;
    devices::cuda::cuda_device& cuda_;
    const std::shared_ptr<devices::device_backend> owner_; ///< the same
    const std::string name_;
    const std::size_t budget_;
};

} // namespace weftio::registrations
