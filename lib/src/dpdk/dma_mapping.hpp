// Memory that devices read by themselves: what they must be told of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

struct rte_device;

namespace weftio::nic {

/// Lets a device read and write bytes at their virtual addresses, while this lives. For devices behind an IOMMU.
///
/// Whole pages are mapped, and what is mapped already is shared: mappings of one arena cost the kernel one. DPDK
/// registers some 100 pieces of memory, and vfio maps 256 (22.11).
///
/// - Ownership: the bytes must stay while this lives. The device may go earlier: see forget_device().
/// - Threads: any.
class dma_mapping {
 public:
    /// Throws weftio::error errc::not_supported, in DPDK's words, when the device cannot be told of these bytes.
    dma_mapping(rte_device& device, const std::byte* begin, std::size_t bytes);
    dma_mapping(const dma_mapping&) = delete;
    dma_mapping& operator=(const dma_mapping&) = delete;
    ~dma_mapping();

 private:
    void cover(rte_device& device, std::uintptr_t begin, std::uintptr_t end);
    void release() noexcept;

    std::vector<std::uintptr_t> pieces_; ///< where they begin
};

/// The device is closed and is about to go: it reads nothing any more, and its mappings end.
void forget_device(const rte_device& device) noexcept;

} // namespace weftio::nic
