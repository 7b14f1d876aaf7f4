// The memory of a send queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "nic/soft/soft_port.hpp"
#include "weftio/eth_txq.hpp"

namespace weftio::detail {

/// What the NIC sees: entries, then completion, doorbell record and doorbell on lines of their own.
struct ring_layout {
    std::size_t completion, dbrec, doorbell, bytes;

    explicit ring_layout(std::size_t entries)
        : completion(entries * WEFTIO_WQE_BLOCK_BYTES), dbrec(completion + 64), doorbell(dbrec + 64),
          bytes(doorbell + 64)
    {}
};

/// One life of a queue: its memory, which a kernel keeps while it runs, and whether the NIC still uses it.
class eth_txq_life final : public lifeline {
 public:
    /// @param home  of the queue, the same for all its lives
    eth_txq_life(std::shared_ptr<nic::soft_port> nic, std::shared_ptr<const nic::home> home, const device& device,
                 const eth_txq_options& options);

    weftio_dev_control* control() const noexcept override
    {
        return static_cast<weftio_dev_control*>(control_.cpu_address());
    }
    const device_backend& backend() const noexcept override { return where_.backend(); }
    std::string describe() const override;
    void quiesce() override;

    /// Nothing written, nothing completed: what the NIC needs.
    nic::tx_ring begin() const;
    /// Tells kernels where everything is, as queue `number`. Throws what an upload to the device throws.
    void announce(std::uint32_t number);
    /// Between two turns, like end(): the NIC uses it from now on.
    void began(nic::tx_queue& queue) noexcept { queue_ = &queue; }
    void end() noexcept { queue_ = nullptr; }
    weftio_dev_eth_txq* handle() const noexcept { return static_cast<weftio_dev_eth_txq*>(handle_.device_address()); }

 private:
    void fill_handle();

    std::shared_ptr<nic::soft_port> nic_;
    std::shared_ptr<const nic::home> home_;
    device where_;
    eth_txq_options options_;
    ring_layout layout_;
    memory ring_, filled_, control_, handle_;
    std::uint32_t number_ = 0;
    nic::tx_queue* queue_ = nullptr; ///< while the NIC uses this life; changes between two turns only
};

} // namespace weftio::detail
