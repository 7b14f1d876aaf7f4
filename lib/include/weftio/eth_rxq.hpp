// A ring of receive slots that a kernel owns.
#pragma once

#include <cstdint>
#include <memory>

#include "weftio/device.hpp"
#include "weftio/device/eth_rxq.h"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"

namespace weftio {

struct eth_rxq_options {
    std::uint32_t packets = 1024;          ///< slots: a power of two in 64..32768
    std::uint32_t max_packet_bytes = 2048; ///< bytes of a slot, 64..16384, rounded up to a multiple of 64
    /// Where kernels read packets. `cpu_device`: where the driver or the engine has put them. `device`, on a GPU: a
    /// copy engine takes them to the GPU's own memory in bursts, and a completion is published when its packet has
    /// landed; they cannot be sent from there.
    memory_kind buffers = memory_kind::cpu_device;
    /// Verify IPv4, UDP and TCP checksums in software where the driver has not: the flags of a packet say what was
    /// found good.
    bool verify_checksums = true;
    /// The engine of the port that fills the queue, from 0 on; -1: the one with the fewest receive queues, the first
    /// one of these. Packets that the port receives for another engine are handed over, which costs more than what its
    /// own port queue brings.
    int engine = -1;
    /// Of the slots: send queues of this one may send packets from where they lie.
    protection_domain domain{};
};

/// A queue's own account: offered = delivered + the drops, all of them packets that steering sent here.
struct eth_rxq_counters {
    std::uint64_t delivered = 0;
    std::uint64_t delivered_bytes = 0;
    std::uint64_t out_of_buffer = 0;
    std::uint64_t too_long = 0;
    std::uint64_t flushed = 0; ///< slots that were posted and not filled when the queue was stopped or reset
};

/// A ring of receive slots that a kernel owns.
///
/// - Ownership: move-only; keeps its `port` and `device` alive. Flows that point here do not keep it: see flow.
/// - Threads: create, move and destroy from one thread at a time, while no kernel holds the handle.
/// - Nothing arrives before a `flow` sends packets here.
class eth_rxq {
 public:
    /// @throws weftio::error
    ///     - `errc::invalid_argument` `packets` is not a power of two in 64..32768, or `max_packet_bytes` is not in
    ///       64..16384
    ///     - `errc::invalid_argument` the port has no engine of that number
    ///     - `errc::not_supported`    the device has no memory of kind `buffers`, or no copy engine that would fill it
    ///     - `errc::out_of_memory`
    eth_rxq(const port& port, const device& device, eth_rxq_options options = {});
    eth_rxq(eth_rxq&&) noexcept;
    eth_rxq& operator=(eth_rxq&&) noexcept;
    ~eth_rxq();
    /// False once it has been moved from; then only assignment and the destructor may be called.
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// What a kernel is given; pass the queue itself to device::launch.
    weftio_dev_eth_rxq* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t packets() const noexcept;
    eth_rxq_counters counters() const;
    /// Starts again at index 0 with fresh memory: flows go on, counters too. A kernel that still runs keeps the old
    /// memory, and its slots are no longer the NIC's. Blocks as long as one turn of the port's engines.
    /// @throws weftio::error errc::out_of_memory
    void reset();
    /// For device::launch: what a kernel holds of the queue.
    std::shared_ptr<detail::lifeline> line() const noexcept;
    /// The engine that fills it now. Any thread.
    unsigned engine() const noexcept;
    /// Lets another engine of the port fill the queue, while packets arrive and kernels receive: none is lost, doubled
    /// or out of order. The port's own spread of flows over its engines stays as it is, so packets of flows that it
    /// brings elsewhere are handed over. Blocks as long as one turn of the port's engines, while the other engine has
    /// no room for what is on its way up to 1 s. Any thread, also with a reset() in another, which one waits for; in
    /// inline mode none that is in a kernel. @throws weftio::error errc::invalid_argument no such engine; errc::in_use
    /// it had no room for 1 s: the queue stays where
    ///         it is
    void move_to(unsigned engine);
    /// Number of the queue at its port; flows name it.
    std::uint32_t number() const noexcept;
    const std::shared_ptr<nic::backend>& port_backend() const noexcept;

 private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
