// The memory of a send queue, of whatever kind: its ring, its handle, and who still uses them.
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

namespace weftio::detail {

/// What the NIC sees: entries, then completion, doorbell record and doorbell on lines of their own.
struct ring_layout {
    std::size_t completion, dbrec, doorbell, bytes;

    explicit ring_layout(std::size_t entries)
        : completion(entries * WEFTIO_WQE_BLOCK_BYTES), dbrec(completion + 64), doorbell(dbrec + 64),
          bytes(doorbell + 64)
    {}
};

/// As nic::tx_ring says of each.
struct send_ring_options {
    std::uint32_t entries = 0;
    std::uint64_t horizon_ns = 0;
    protection_domain domain{};
};

/// @param who  what an error begins with, "eth_txq"
/// @throws weftio::error errc::invalid_argument `entries` is not a power of two in 64..32768
void require_send_entries(std::string_view who, std::uint32_t entries);

/// One life of a queue: its memory, which a kernel keeps while it runs, and whether the NIC still uses it.
class send_life final : public lifeline {
 public:
    send_life(const device& device, const send_ring_options& options);

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_.cpu_address());
    }
    const device_backend& backend() const noexcept override { return where_.backend(); }
    std::string describe() const override;
    void quiesce() override;

    /// Nothing written, nothing completed: what the NIC needs.
    nic::tx_ring begin() const;
    /// Tells kernels where everything is: this is ring `ring_number` of `queue`. Throws what an upload to the device
    /// throws.
    void belong_to(std::shared_ptr<nic::send_queue> queue, std::uint32_t ring_number);
    weftio_dev_send_queue* handle() const noexcept
    {
        return static_cast<weftio_dev_send_queue*>(handle_.device_address());
    }

 private:
    void fill_handle();

    device where_;
    send_ring_options options_;
    ring_layout layout_;
    memory ring_, filled_, control_, handle_;
    std::shared_ptr<nic::send_queue> queue_;
    std::uint32_t ring_number_ = 0; ///< that of ring_, at the queue
};

} // namespace weftio::detail
