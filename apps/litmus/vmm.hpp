// Physical memory of a GPU, mapped at reserved addresses: the driver's virtual memory management (VMM).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cuda.hpp"

namespace weftio::litmus {

/// Why this GPU has no such memory that NICs reach, as a sentence. Empty: it has.
std::string why_no_vmm(const gpu& of);

/// Of cuMemCreate(), for NICs (gpuDirectRDMACapable) and as a file descriptor that can be exported; cuMemMap().
class mapped_memory {
 public:
    /// Throws failure.
    /// @param bytes  rounded up to whole pieces of the GPU
    /// @param gpus   numbers of those that access it; it lies on the first
    mapped_memory(std::size_t bytes, const std::vector<int>& gpus);
    ~mapped_memory();
    mapped_memory(const mapped_memory&) = delete;
    mapped_memory& operator=(const mapped_memory&) = delete;

    device_pointer at() const { return at_; }
    std::size_t bytes() const { return bytes_; }

 private:
    void map(const std::vector<int>& gpus);
    void give_back() noexcept;

    std::size_t bytes_ = 0;
    device_pointer at_ = 0;
    bool is_mapped_ = false;
};

} // namespace weftio::litmus
