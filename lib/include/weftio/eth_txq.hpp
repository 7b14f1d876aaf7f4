// A ring of send entries that a kernel owns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "weftio/counters.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/eth_txq.h"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"
#include "weftio/progress.hpp"

namespace weftio {

struct eth_txq_options {
    std::uint32_t entries = 1024; ///< a power of two in 64..32768
    /// Clock of the wait entries. The software NIC has one, "utc"; any other is refused.
    std::string clock = "utc";
    /// A wait entry further ahead of the clock than this fails. A ConnectX compares 35 bits of the clock, so its limit
    /// is 4 s.
    std::uint64_t horizon_ns = 4'000'000'000;
    /// The engine of the port that sends for the queue, counted from 0; -1: the engine with the fewest send queues, the
    /// lowest number first.
    int engine = -1;
    /// Entries may name regions of this domain only.
    protection_domain domain{};
    /// Flags that are added to those of every enqueue call: WEFTIO_DEV_SEND_L3_CHECKSUM, WEFTIO_DEV_SEND_L4_CHECKSUM or
    /// both. Weftio's enqueue functions write them into the entries; a kernel that writes entries itself must set them
    /// itself.
    std::uint32_t checksums = WEFTIO_DEV_SEND_NONE;
};

/// A ring of send entries that a kernel owns.
///
/// - Ownership: move-only; keeps its `port` and `device` alive. Pushed entries are executed even if the kernel that
///   enqueued them has returned. The destructor flushes entries that the port has not taken.
/// - Link: while the Linux interface behind the port is down or has no carrier, entries wait. After 2 s they fail, and
///   later entries fail too, until the link is up and the queue is reset(). An engine checks the link every 20 ms:
///   frames that it sends between the loss of the link and the next check may be lost.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle.
class eth_txq {
 public:
    /// @throws weftio::error
    ///     - `errc::invalid_argument` `entries` is not a power of two in 64..32768, `clock` is not the port's, or
    ///       `checksums` has other bits
    ///     - `errc::invalid_argument` the port has no engine with the number `engine`
    ///     - `errc::not_supported`    the port cannot send: a capture file that is only read
    ///     - `errc::out_of_memory`
    eth_txq(const port& port, const device& device, eth_txq_options options = {});
    eth_txq(eth_txq&&) noexcept;
    eth_txq& operator=(eth_txq&&) noexcept;
    ~eth_txq();

    /// The argument for a kernel; pass the queue itself to device::launch.
    weftio_dev_eth_txq* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t entries() const noexcept;
    std::uint32_t number() const noexcept;
    /// The engine that sends for the queue now. Any thread.
    unsigned engine() const noexcept;
    /// Moves the queue to another engine of the port, while kernels enqueue: no entry is lost or executed twice, and
    /// frames keep their order on the wire. Nothing of the queue is executed until the driver has returned all frames
    /// of the old engine: blocks until then, at most 1 s. A wait entry whose time comes meanwhile is executed late.
    /// Drivers that copy, such as net_af_packet, return a frame when Linux has taken it; a frame that still waits in
    /// Linux may be overtaken. Thread-safe; serialized with reset(). In inline mode, do not call from a thread that
    /// runs a kernel.
    /// @throws weftio::error errc::invalid_argument no such engine; errc::in_use the port still holds frames of the
    ///         queue after 1 s: the queue stays at its engine and continues; errc::out_of_memory
    void move_to(unsigned engine);

    /// Value of a wait entry for a time in UTC nanoseconds.
    static std::uint64_t timestamp(std::uint64_t utc_ns) noexcept { return weftio_real_time_from_ns(utc_ns); }
    const std::string& clock_name() const noexcept;

    eth_txq_counters counters() const;
    schedule_error schedule() const; ///< how late frames behind wait entries were handed to the driver
    /// Whether an entry has failed; later entries are then flushed until reset().
    bool failed() const;
    /// Makes the queue usable again after an error, at position 0 with fresh memory; counters continue. A kernel that
    /// still runs keeps the old memory, which the NIC no longer reads. Blocks until the port has returned all frames
    /// that it holds, at most 1 s.
    /// @throws weftio::error errc::in_use the port still holds frames of the queue; errc::closed the device has been
    ///         removed (port::gone()); errc::out_of_memory
    void reset();

 private:
    friend detail::internals;
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
