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
    /// Clock that wait entries are in; the software NIC has one, "utc". Anything else is refused.
    std::string clock = "utc";
    /// A wait further ahead than this is an error. A ConnectX compares 35 bits of the clock and cannot look further
    /// than 4 s.
    std::uint64_t horizon_ns = 4'000'000'000;
    /// The engine of the port that sends for the queue, from 0 on; -1: the one with the fewest send queues, the first
    /// one of these.
    int engine = -1;
    /// Entries may name regions of this one only.
    protection_domain domain{};
    /// Flags that every enqueue call has beside its own: WEFTIO_DEV_SEND_L3_CHECKSUM, WEFTIO_DEV_SEND_L4_CHECKSUM or
    /// both. Weftio's enqueue functions write them into the entries; entries that a kernel writes itself say it
    /// themselves.
    std::uint32_t checksums = WEFTIO_DEV_SEND_NONE;
};

/// A ring of send entries that a kernel owns.
///
/// - Ownership: move-only; keeps its `port` and `device` alive. Entries that were pushed are executed also after the
///   kernel that enqueued them has returned; the destructor flushes what has not been handed to the port.
/// - Link: while the kernel's interface behind the port is down or has no carrier, entries wait; after 2 s they fail,
///   as later ones do until the link is up and the queue is reset(). An engine looks every 20 ms: what goes in between
///   may be lost.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle.
class eth_txq {
 public:
    /// @throws weftio::error
    ///     - `errc::invalid_argument` `entries` is not a power of two in 64..32768, or `clock` is not the port's,
    ///       or `checksums` has other bits
    ///     - `errc::invalid_argument` the port has no engine of that number
    ///     - `errc::not_supported`    nothing can be sent on the port: a capture file that is only read
    ///     - `errc::out_of_memory`
    eth_txq(const port& port, const device& device, eth_txq_options options = {});
    eth_txq(eth_txq&&) noexcept;
    eth_txq& operator=(eth_txq&&) noexcept;
    ~eth_txq();

    /// What a kernel is given; pass the queue itself to device::launch.
    weftio_dev_eth_txq* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t entries() const noexcept;
    std::uint32_t number() const noexcept;
    /// The engine that sends for it now. Any thread.
    unsigned engine() const noexcept;
    /// Lets another engine of the port send for the queue, while kernels enqueue: no entry is lost or executed twice,
    /// and frames keep their order on the wire. For that, nothing is executed until the port queue of the engine before
    /// has given back what it holds: this blocks so long, at most 1 s. (Drivers that copy, such as net_af_packet, give
    /// a frame back once the kernel has it; one that waits there may be overtaken.) A deadline that comes meanwhile is
    /// kept late. Any thread, also with a reset() in another, which one waits for; in inline mode none that is in a
    /// kernel. @throws weftio::error errc::invalid_argument no such engine; errc::in_use the port still holds frames of
    /// it after 1 s:
    ///         the queue stays where it is, and goes on; errc::out_of_memory
    void move_to(unsigned engine);

    /// Value of a wait entry for a time in UTC nanoseconds.
    static std::uint64_t timestamp(std::uint64_t utc_ns) noexcept { return weftio_real_time_from_ns(utc_ns); }
    const std::string& clock_name() const noexcept;

    eth_txq_counters counters() const;
    schedule_error schedule() const;
    /// Whether an entry has failed: later ones are flushed until reset().
    bool failed() const;
    /// Brings the queue back after an error, at position 0 with fresh memory; counters go on. A kernel that still runs
    /// keeps the old memory, which the NIC no longer reads. Blocks until the port has given back what it holds, at most
    /// 1 s. @throws weftio::error errc::in_use the port still holds frames of it; errc::closed port::gone();
    /// errc::out_of_memory
    void reset();

 private:
    friend detail::internals;
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
