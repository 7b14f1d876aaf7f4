// A ring of receive slots that a kernel owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weftio/counters.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/eth_rxq.h"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"

namespace weftio {

struct eth_rxq_options {
    /// Slots: a power of two in 64..65536. Of 65,536 one is always held back, and 65,535 packets at most wait: the
    /// doorbell record has 16 bits, in which 65,536 posted slots would look like none.
    std::uint32_t packets = 1024;
    /// The longest packet, 64..16384 bytes. Slots of the queue's own are rounded up to a multiple of 64.
    std::uint32_t max_packet_bytes = 2048;
    /// Memory in which kernels read packets. `cpu_device`: host memory, which the driver or the engine writes.
    /// `device`, on a GPU: the GPU's own memory, to which a copy engine carries packets in bursts; a completion is
    /// published when its packet has arrived there. Such packets can be sent from where they lie only if they lie in a
    /// `region` of the caller's that is registered with the port; a copy engine brings them back to the host.
    /// `device_cpu` is refused.
    memory_kind buffers = memory_kind::cpu_device;
    /// Verify IPv4, UDP and TCP checksums in software if the driver has not; a packet's flags tell which were found
    /// good.
    bool verify_checksums = true;
    /// The engine of the port that fills the queue, counted from 0; -1: the first of those with the fewest receive
    /// queues. Packets that another engine receives are handed over, which costs more than receiving them here.
    int engine = -1;
    /// Of the slots: send queues of this one may send packets from where they lie.
    protection_domain domain{};
    /// Slots in memory of the caller's: slot k begins at byte `offset_bytes + k * stride_bytes` of this region, whose
    /// bytes the queue keeps (adopted ones are their owner's). Its memory's kind takes the place of `buffers`, its key
    /// that of the queue's own: register it with the port, if packets shall be sent from where they lie. Packets are
    /// copied there, once: no driver fills such slots itself. nullptr: the queue allocates its slots. Looked at by the
    /// constructor only.
    const memory_region* region = nullptr;
    std::size_t offset_bytes = 0; ///< of slot 0 in `region`; any byte
    /// From slot to slot in `region`, at least max_packet_bytes + zeroed_bytes. 0: that, rounded up to a multiple of 64.
    std::uint32_t stride_bytes = 0;
    /// Packet n of the queue lies in slot n % packets: packets follow each other in memory as they arrived, and a slot
    /// is filled again when all others have been. Costs a copy for each packet, as `region` does.
    bool consecutive = false;
    /// So many bytes behind each packet are 0, up to 4096, for kernels that read whole words. Costs the software NIC its
    /// shortest way for packets, as verify_checksums does.
    std::uint32_t zeroed_bytes = 0;
};

/// A ring of receive slots that a kernel owns.
///
/// - Ownership: move-only; keeps its `port` and `device` alive. Flows that point here do not keep the queue alive: see
///   flow.
/// - Threads: create, move and destroy from one thread at a time, while no kernel holds the handle.
/// - A queue receives nothing until a `flow` sends packets to it.
class eth_rxq {
 public:
    /// @throws weftio::error
    ///     - `errc::invalid_argument` `packets` is not a power of two in 64..65536, `max_packet_bytes` is not in
    ///       64..16384, or `zeroed_bytes` is above 4096
    ///     - `errc::invalid_argument` `region` is too small for the slots, has no access::local_write, or is left out
    ///       while an offset or a stride is not; `stride_bytes` is too short; `domain` or `buffers` is set beside it (the
    ///       region has both)
    ///     - `errc::invalid_argument` the port has no engine of that number
    ///     - `errc::not_reachable`    the memory of `region` is another device's
    ///     - `errc::not_supported`    the device has no memory of kind `buffers`, or no copy engine that would fill it
    ///     - `errc::out_of_memory`
    eth_rxq(const port& port, const device& device, eth_rxq_options options = {});
    eth_rxq(eth_rxq&&) noexcept;
    eth_rxq& operator=(eth_rxq&&) noexcept;
    ~eth_rxq();
    /// False after a move from the object; then only assignment and the destructor may be called.
    explicit operator bool() const noexcept { return state_ != nullptr; }

    /// The argument for a kernel; pass the queue itself to device::launch.
    weftio_dev_eth_rxq* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t packets() const noexcept;
    eth_rxq_counters counters() const;
    /// Starts again at index 0 with fresh memory; flows and counters continue. A running kernel keeps the old memory,
    /// whose slots the NIC no longer fills. Blocks for up to one iteration of the port's engines.
    /// @throws weftio::error errc::out_of_memory
    void reset();
    /// The engine that fills the queue now. Any thread.
    unsigned engine() const noexcept;
    /// Moves the queue to another engine of the port, while packets arrive and kernels receive: no packet is lost,
    /// doubled or reordered. The port's distribution of flows over its engines does not change, so packets that it
    /// brings to another engine are handed over. Blocks for one iteration of the port's engines, or up to 1 s while the
    /// new engine has no room for packets in transit. Any thread, also during a reset() in another, for which it waits;
    /// in inline mode no thread that runs a kernel.
    /// @throws weftio::error errc::invalid_argument no such engine; errc::in_use the new engine had no room for 1 s,
    ///         and the queue stays where it is
    void move_to(unsigned engine);
    /// Number of the queue at its port, by which rules refer to it.
    std::uint32_t number() const noexcept;

 private:
    friend detail::internals;
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
