// The memory of a send queue of any kind: its ring and its handle, and which ring of the queue they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "nic/backend.hpp"
#include "weftio/device.hpp"
#include "weftio/device/queue/send.h"
#include "weftio/memory.hpp"

namespace weftio::queues {

/// Offsets in the memory of a send ring: the entries, then completion, doorbell record and doorbell, each on a cache
/// line of its own (docs/formats.md).
struct ring_layout {
    std::size_t completion, dbrec, doorbell, bytes;

    explicit ring_layout(std::size_t entries)
        : completion(entries * WEFTIO_WQE_BLOCK_BYTES), dbrec(completion + 64), doorbell(dbrec + 64),
          bytes(doorbell + 64)
    {}
};

/// Options of a send ring; nic::tx_ring describes each.
struct send_ring_options {
    std::uint32_t entries = 0;
    std::uint64_t horizon_ns = 0;
    protection_domain domain{};
    std::uint32_t abi = 0;       ///< of the handle: what kind of queue it is
    std::uint32_t checksums = 0; ///< WEFTIO_ETH_*_CHECKSUM, in each entry that sends a frame
};

/// Checks the number of entries of a ring. @param who  kind of the queue, for the error text: "eth_txq"
/// @param option  name of the option
/// @throws weftio::error errc::invalid_argument `entries` is not a power of two in 64..32768
void require_send_entries(std::string_view who, std::uint32_t entries, std::string_view option = "entries");

/// One life of a send queue, from one reset to the next: the memory of its ring, which a running kernel keeps alive (a
/// lifeline).
class send_life final : public devices::lifeline {
 public:
    send_life(const device& device, const send_ring_options& options);

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_.cpu_address());
    }
    const devices::device_backend& backend() const noexcept override { return where_.backend(); }
    std::string describe() const override;
    void quiesce() override;

    /// Initializes the ring: no entry is written, none is completed. Returns what the NIC needs of it.
    nic::tx_ring begin() const;
    /// Fills the handle that kernels read. @param ring_number  number of this ring at `queue`
    /// Throws what an upload to the device throws.
    void belong_to(std::shared_ptr<nic::send_queue> queue, std::uint32_t ring_number);
    weftio_dev_send_queue* handle() const noexcept
    {
        return static_cast<weftio_dev_send_queue*>(handle_.device_address());
    }
    /// The collapsed completion, as kernels see it.
    const weftio_cqe* completion() const noexcept
    {
        const auto* const base = static_cast<const std::byte*>(ring_.device_address());
        return reinterpret_cast<const weftio_cqe*>(base + layout_.completion);
    }

 private:
    void fill_handle();

    device where_;
    send_ring_options options_;
    ring_layout layout_;
    memory ring_, filled_, control_, handle_;
    std::shared_ptr<nic::send_queue> queue_;
    std::uint32_t ring_number_ = 0; ///< number of ring_ at queue_
};

} // namespace weftio::queues
