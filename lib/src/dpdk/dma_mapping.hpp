// Maps memory for devices that read it by DMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct rte_device;

namespace weftio::dpdk {

/// While it lives, a device may read and write these bytes at their virtual addresses. For devices behind an IOMMU.
///
/// Maps whole pages, and shares existing mappings, so that all mappings of one arena cost the kernel one. DPDK can
/// register some 100 pieces of memory, vfio can map 256 (22.11).
///
/// - Ownership: the bytes must outlive this object. The device may be removed before: see forget_device().
/// - Threads: any.
class dma_mapping {
 public:
    /// Throws weftio::error errc::not_supported, with DPDK's reason, if the bytes cannot be mapped for the device.
    dma_mapping(rte_device& device, const std::byte* begin, std::size_t bytes);
    dma_mapping(const dma_mapping&) = delete;
    dma_mapping& operator=(const dma_mapping&) = delete;
    ~dma_mapping();

 private:
    void cover(rte_device& device, std::uintptr_t begin, std::uintptr_t end);
    void release() noexcept;

    std::vector<std::uintptr_t> pieces_; ///< start addresses
};

/// Removes a device's mappings. Call it after the device is closed, so that it reads nothing any more, and before it is
/// removed.
void forget_device(const rte_device& device) noexcept;

} // namespace weftio::dpdk
