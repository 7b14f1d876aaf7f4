// Copies of memory that kernels, or the host, have somebody else do.
#pragma once

#include <cstdint>
#include <memory>

#include "weftio/device.hpp"
#include "weftio/device/dma.h"
#include "weftio/memory.hpp"
#include "weftio/port.hpp"

namespace weftio {

namespace nic {
class dma_backend;
}
namespace detail {
class reported_queue;
}

struct dma_engine_options {
    engine_mode mode = engine_mode::thread; ///< inline_worker: CPU kernels' commits, and dma_engine::turn()
    idle_policy idle = idle_policy::sleep;
    int core = -1;    ///< core of the engine's thread; -1: wherever the system puts it
    int realtime = 0; ///< as port_options::realtime
};

/// Executes the copies of DMA queues, with the CPU. It needs no port, no NIC and no EAL.
///
/// - Ownership: a cheap handle; queues and regions made on it keep it alive.
/// - Threads: any. Queues and regions come and go while it runs.
/// - Processes: as port says of a child of fork().
class dma_engine {
 public:
    /// @throws weftio::error errc::invalid_argument a core or a priority that does not exist, or an option's value;
    ///         errc::permission_denied a real-time priority without CAP_SYS_NICE; errc::out_of_memory there are 64 ports
    ///         and engines already; errc::device_error no thread can be made
    explicit dma_engine(dma_engine_options options = {});

    /// Inline mode: gives each queue one turn, and returns the entries that were executed. Any thread; one at a time
    /// has its turn. @throws weftio::error errc::invalid_argument the engine has a thread
    unsigned turn() const;

    nic::dma_backend& backend() const noexcept { return *backend_; }
    const std::shared_ptr<nic::dma_backend>& share() const noexcept { return backend_; }

 private:
    std::shared_ptr<nic::dma_backend> backend_;
};

struct dma_queue_options {
    std::uint32_t entries = 1024; ///< a power of two in 64..32768
    protection_domain domain{};   ///< entries may name regions of this one only
};

/// A queue's own account. Once it is idle: enqueued = copied + skipped + failed + flushed, all of them entries.
struct dma_counters {
    std::uint64_t enqueued = 0; ///< entries that the engine is done with
    std::uint64_t copied = 0;   ///< copies and fills
    std::uint64_t copied_bytes = 0;
    std::uint64_t skipped = 0; ///< no-operations
    std::uint64_t failed = 0;  ///< entries that could not be executed, and doorbell records that claimed too much
    std::uint64_t flushed =
        0; ///< entries behind one that failed, or that were stopped; 64-byte blocks count one by one
    std::uint64_t lost_events = 0; ///< notifications that found nobody reading
};

/// A ring of copies that a kernel owns.
///
/// Source and destination of an entry lie in regions that the engine has been told of (memory_region); the destination's
/// has access::local_write. An entry that names anything else fails, with what is behind it, and changes no byte. Copies
/// of a queue happen in order. Long ones are done in parts, between which the engine serves its other queues; one whose
/// region ends meanwhile fails half done.
///
/// - Ownership: move-only; keeps its engine and its device alive. Entries that were committed are executed also after
///   the kernel that enqueued them has returned; the destructor flushes what has not been copied, and waits for no more
///   than a turn.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle.
class dma_queue {
 public:
    /// @throws weftio::error errc::invalid_argument `entries` is not a power of two in 64..32768; errc::out_of_memory
    dma_queue(const dma_engine& engine, const device& device, dma_queue_options options = {});
    dma_queue(dma_queue&&) noexcept;
    dma_queue& operator=(dma_queue&&) noexcept;
    ~dma_queue();

    /// What a kernel is given; pass the queue itself to device::launch. Of a queue on device "cpu" the host itself may
    /// call the functions of weftio/device/dma.h with it, from one thread or several, if no kernel uses it in weak mode.
    weftio_dev_dma* handle() const noexcept;
    weftio_dev_control* control() const noexcept;
    std::uint32_t entries() const noexcept;
    std::uint32_t number() const noexcept; ///< at its engine

    /// Any thread; does not block.
    dma_counters counters() const;
    /// Whether an entry has failed: later ones are flushed until reset(). Blocks as long as one turn.
    bool failed() const;
    /// Brings the queue back after an error, at position 0 with fresh memory; counters go on. A kernel that still runs
    /// keeps the old memory, which the engine no longer reads. Blocks as long as one turn.
    /// @throws weftio::error errc::out_of_memory
    void reset();
    /// For device::launch: what a kernel holds of the queue.
    std::shared_ptr<detail::lifeline> line() const noexcept;
    /// For progress_engine::attach.
    std::shared_ptr<detail::reported_queue> reports() const noexcept;

 private:
    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
