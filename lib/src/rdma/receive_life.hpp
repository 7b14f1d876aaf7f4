// The memory of the receive ring of a queue pair: entries, completions and the handle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nic/rdma_backend.hpp"
#include "weftio/device.hpp"
#include "weftio/device/rdma/receive.h"

namespace weftio::rdma {

/// Offsets in the memory of a receive ring: completions, entries, then the doorbell record and a doorbell that nobody
/// looks at, each on a cache line of its own (docs/formats.md).
struct receive_layout {
    std::size_t entries, dbrec, doorbell, bytes;

    receive_layout(std::size_t depth, std::size_t segments)
        : entries(depth * sizeof(weftio_cqe)), dbrec(entries + depth * segments * WEFTIO_WQE_SEGMENT_BYTES),
          doorbell(dbrec + 64), bytes(doorbell + 64)
    {}
};

/// One life of a receive ring, from one reset to the next, which a running kernel keeps alive (a lifeline).
class receive_life final : public devices::lifeline {
 public:
    receive_life(const device& device, std::uint32_t depth, std::uint32_t segments);

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_.cpu_address());
    }
    const devices::device_backend& backend() const noexcept override { return where_.backend(); }
    std::string describe() const override;
    void quiesce() override;

    /// Initializes the ring: no entry is posted. Returns what the NIC needs of it.
    nic::rdma_receive_ring begin();
    /// Fills the handle that kernels read. @param connection  the completion of the send side, as kernels see it
    /// @param ring_number  number of this ring at `queue`. Throws what an upload to the device throws.
    void belong_to(std::shared_ptr<nic::rdma_queue> queue, std::uint32_t ring_number, const weftio_cqe* connection);
    weftio_dev_rdma_recv* handle() const noexcept
    {
        return static_cast<weftio_dev_rdma_recv*>(handle_.device_address());
    }

 private:
    void fill_handle(const weftio_cqe* connection);

    device where_;
    const std::uint32_t depth_, segments_;
    const receive_layout layout_;
    memory ring_, marks_, control_, handle_; ///< marks_: the kernels' own completion, then bits of filled entries
    std::shared_ptr<nic::rdma_queue> queue_;
    std::uint32_t ring_number_ = 0; ///< number of ring_ at queue_
};

} // namespace weftio::rdma
