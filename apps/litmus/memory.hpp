// Memory that NICs, GPUs and the CPU access.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda.hpp"

namespace weftio::litmus {

/// Words of eight bytes, zeroed. The GPU of `words::of_gpu` must be in use when they are made and when they end.
class words {
 public:
    enum kind {
        of_host, ///< at pages of their own
        pinned,  ///< of the host, and all GPUs reach them at the same address
        of_gpu,  ///< the CPU must not follow their addresses
    };

    words(std::size_t count, kind of);
    ~words();
    words(const words&) = delete;
    words& operator=(const words&) = delete;

    std::uint64_t* at(std::size_t word) const { return at_ + word; }
    std::size_t bytes() const { return bytes_; }
    bool in_gpu() const { return kind_ == of_gpu; }
    /// A descriptor, which the caller closes. Throws failure. @pre in_gpu()
    int export_dma_buf() const;

 private:
    const kind kind_;
    const std::size_t bytes_;
    std::uint64_t* at_ = nullptr;
};

} // namespace weftio::litmus
