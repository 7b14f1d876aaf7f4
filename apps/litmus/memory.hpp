// Memory that NICs, GPUs and the CPU access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cuda.hpp"
#include "vmm.hpp"

namespace weftio::litmus {

/// Words of eight bytes, zeroed. The GPU of `words::of_gpu` must be in use when they are made and when they end.
class words {
 public:
    enum kind {
        of_host, ///< at pages of their own
        pinned,  ///< of the host, and all GPUs reach them at the same address
        of_gpu,  ///< of cuMemAlloc(); the CPU must not follow their addresses
        mapped,  ///< of a GPU, too, by cuMemCreate() and cuMemMap()
    };

    /// Throws failure.
    /// @param gpus  numbers of those that access `mapped` words, the owner's first; of other kinds: not looked at
    words(std::size_t count, kind of, const std::vector<int>& gpus = {});
    ~words();
    words(const words&) = delete;
    words& operator=(const words&) = delete;

    std::uint64_t* at(std::size_t word) const { return at_ + word; }
    std::size_t bytes() const { return bytes_; }
    bool in_gpu() const { return kind_ == of_gpu || kind_ == mapped; }
    /// A descriptor, which the caller closes. Throws failure. @pre in_gpu()
    int export_dma_buf() const;

 private:
    void take();

    const kind kind_;
    std::size_t bytes_;
    std::optional<mapped_memory> mapped_;
    std::uint64_t* at_ = nullptr;
};

} // namespace weftio::litmus
