// GPUs and the memory that programs have allocated on them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "doca_gpunetio.h"
#include "kernel_table.hpp"
#include "object.hpp"
#include "weftio/device.hpp"

namespace weftio::doca {

/// Bytes of a program: a part of a block of memory.
struct memory_part {
    std::shared_ptr<const memory> block;
    std::size_t offset = 0;
};

/// Whether `type` is one of the three.
/// @throws failure DOCA_ERROR_INVALID_VALUE
void require_memory_type(doca_gpu_mem_type type);

} // namespace weftio::doca

struct doca_gpu {
    static constexpr const char* noun = "GPU";

    explicit doca_gpu(weftio::device opened)
        : device(std::move(opened)), tables(std::make_shared<weftio::doca::table_memory>(device))
    {}

    const weftio::device device;
    const std::shared_ptr<weftio::doca::table_memory> tables;

    /// @throws weftio::error as device::allocate
    const weftio::memory& allocate(std::size_t bytes, std::size_t alignment);
    /// @throws weftio::doca::failure DOCA_ERROR_INVALID_VALUE
    void free(const void* address);
    /// Number of allocations.
    std::size_t allocations();
    /// The allocation that has these bytes; none if they are not in one of this GPU.
    std::optional<weftio::doca::memory_part> find(const void* address, std::size_t bytes);

 private:
    std::mutex mutex_;
    std::map<std::uintptr_t, std::shared_ptr<const weftio::memory>> blocks_; ///< by address
};
