// The memory of the receive ring of a queue pair.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "nic/rdma_backend.hpp"
#include "queues/ring_life.hpp"
#include "weftio/device/rdma/receive.h"

namespace weftio::rdma {

/// Offsets in the memory of a receive ring: completions, entries, then the doorbell record on a cache line of its own
/// (docs/formats.md).
struct receive_layout {
    std::size_t entries, dbrec, bytes;

    receive_layout(std::size_t depth, std::size_t segments)
        : entries(depth * sizeof(weftio_cqe)), dbrec(entries + depth * segments * WEFTIO_WQE_SEGMENT_BYTES),
          bytes(dbrec + 64)
    {}
};

/// The receive ring of a queue pair from creation or reset to the next reset.
class receive_life final : public queues::ring_life<weftio_dev_rdma_recv, nic::rdma_queue> {
 public:
    /// @param connection   completion of the send side, as kernels access it
    /// @param needs_flush  queues::needs_flush()
    receive_life(const device& device, std::uint32_t depth, std::uint32_t segments, const weftio_cqe* connection,
                 bool needs_flush);

    std::string describe() const override { return "receives of " + ring_life::describe(); }
    /// Initializes the ring with no entry posted. Returns what the NIC needs to know.
    nic::rdma_receive_ring begin();

 private:
    weftio_dev_rdma_recv make_handle() const override;

    const std::uint32_t depth_, segments_;
    const weftio_cqe* const connection_;
    const bool needs_flush_;
    const receive_layout layout_;
    memory marks_; ///< a completion that kernels write, then the marks of filled entries
};

} // namespace weftio::rdma
