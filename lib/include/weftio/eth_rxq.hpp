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
    /// Number of slots: a power of two in 64..65536. Of 65,536 slots one is never posted, so at most 65,535 packets
    /// wait: the doorbell record has 16 bits, in which 65,536 posted slots would read as none.
    std::uint32_t packets = 1024;
    /// The longest packet, 64..16384 bytes. The size of slots that the queue allocates is rounded up to a multiple of
    /// 64.
    std::uint32_t max_packet_bytes = 2048;
    /// Memory in which kernels read packets. `cpu_device`: host memory, which the driver or the engine writes.
    /// `device`, on a GPU: the GPU's own memory, to which a copy engine moves packets in bursts; the completion of a
    /// packet is published after the copy. Such a packet can be sent without a copy by the kernel only if the slots lie
    /// in a `region` of the caller that is registered with the port; a copy engine then copies it back to the host.
    /// `device_cpu` is refused.
    memory_kind buffers = memory_kind::cpu_device;
    /// Verifies IPv4, UDP and TCP checksums in software if the driver has not done so. The flags of a packet say which
    /// checksums are good.
    bool verify_checksums = true;
    /// The engine of the port that fills the queue, counted from 0; -1: the engine with the fewest receive queues,
    /// the lowest number first. Packets that arrive at another engine are handed over, which costs more than receiving
    /// them at the engine of the queue.
    int engine = -1;
    /// Protection domain of the slots: send queues of this domain may send packets directly from the slots.
    protection_domain domain{};
    /// Slots in memory of the caller: slot k begins at byte `offset_bytes + k * stride_bytes` of this region. The queue
    /// keeps the memory alive (adopted memory belongs to the caller). The region determines the kind of memory, in
    /// place of `buffers`, and the key: register it with the port if packets are to be sent from the slots. Each packet
    /// is copied into its slot once; no driver fills such slots directly. nullptr: the queue allocates its slots. Only
    /// the constructor reads this pointer.
    const memory_region* region = nullptr;
    std::size_t offset_bytes = 0; ///< offset of slot 0 in `region`; any alignment
    /// Distance of slots in `region`, at least max_packet_bytes + zeroed_bytes. 0: that sum, rounded up to a multiple
    /// of 64.
    std::uint32_t stride_bytes = 0;
    /// Packet n of the queue lies in slot n % packets: packets lie in memory in the order of arrival, and a slot is
    /// reused only after all others. Costs one copy per packet, as `region` does.
    bool consecutive = false;
    /// Number of zero bytes after each packet, up to 4096, for kernels that read whole words. Disables the fastest
    /// receive path of the software NIC, as verify_checksums does.
    std::uint32_t zeroed_bytes = 0;
};

/// A ring of receive slots that a kernel owns.
///
/// - Ownership: move-only; keeps its `port` and `device` alive. Flows that point to the queue do not keep it alive (see
///   flow).
/// - Threads: create, move and destroy from one thread at a time, while no kernel holds the handle.
/// - A queue receives nothing until a `flow` sends packets to it.
class eth_rxq {
 public:
    /// @throws weftio::error
    ///     - `errc::invalid_argument` `packets` is not a power of two in 64..65536, `max_packet_bytes` is not in
    ///       64..16384, or `zeroed_bytes` is above 4096
    ///     - `errc::invalid_argument` `region` is too small for the slots or has no access::local_write; `domain` or
    ///       `buffers` is set beside `region`, which has both; `offset_bytes` or `stride_bytes` is set without a
    ///       `region`; `stride_bytes` is too short
    ///     - `errc::invalid_argument` the port has no engine with the number `engine`
    ///     - `errc::not_reachable`    the memory of `region` belongs to another device
    ///     - `errc::not_supported`    the device has no memory of kind `buffers`, or no copy engine that could fill it
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
    /// Restarts the queue at index 0 with fresh memory; flows and counters continue. A running kernel keeps the old
    /// memory, whose slots the NIC no longer fills. Blocks for up to one iteration of the port's engines.
    /// @throws weftio::error errc::out_of_memory
    void reset();
    /// The engine that fills the queue now. Any thread.
    unsigned engine() const noexcept;
    /// Moves the queue to another engine of the port, while packets arrive and kernels receive: no packet is lost,
    /// duplicated or reordered. The port's distribution of flows over its engines does not change: packets that arrive
    /// at another engine are handed over. Blocks for one iteration of the port's engines, or up to 1 s while the new
    /// engine cannot take the packets in transit. Thread-safe; serialized with reset(). In inline mode, do not call
    /// from a thread that runs a kernel.
    /// @throws weftio::error errc::invalid_argument no such engine; errc::in_use the new engine could not take the
    ///         packets for 1 s, and the queue stays at its engine
    void move_to(unsigned engine);
    /// Number of the queue at its port, by which rules refer to it.
    std::uint32_t number() const noexcept;

 private:
    friend detail::internals;
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace weftio
