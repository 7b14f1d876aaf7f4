// Memory copies that a DMA engine executes for kernels or for the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "weftio/counters.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/dma.h"
#include "weftio/memory.hpp"
#include "weftio/options.hpp"
#include "weftio/port.hpp"

namespace weftio {

/// Executes the copies and fills of DMA queues. It needs no port, no NIC and no EAL.
///
/// If the CPU can access both sides of a copy, the engine's thread copies the bytes itself. If not, as for memory of a
/// GPU (memory_kind::device), a copy engine of that device copies while the thread continues: from, to or within the
/// memory of the device, or to another device of its kind. All copies that are due in one iteration go to the copy
/// engine as one batch, and up to four batches are in flight. The other side of such a copy is fastest in pinned memory
/// (memory_kind::cpu_device of the same device); a copy engine cannot read ordinary memory by itself, so the thread
/// helps it.
///
/// - Ownership: a cheap handle; queues and regions that are made on it keep it alive.
/// - Threads: any. Queues and regions may be made and destroyed while it runs.
/// - Processes: in a child of fork(), the same rules as for port.
class dma_engine {
 public:
    /// @throws weftio::error errc::invalid_argument a core or a priority does not exist, or another option has an
    ///         invalid value; errc::permission_denied a real-time priority without CAP_SYS_NICE; errc::out_of_memory
    ///         the process has 64 ports and engines already; errc::device_error no thread can be started
    explicit dma_engine(dma_engine_options options = {});

    /// Inline mode: runs the engine once. Each queue executes at most 64 entries and 128 KiB (16 MiB if a copy engine
    /// copies). Returns 0 when there was nothing to do, else a measure of the work done. Any thread; concurrent calls
    /// run one after the other.
    /// @throws weftio::error errc::invalid_argument the engine has a thread
    unsigned turn() const;

 private:
    friend detail::internals;

    std::shared_ptr<nic::dma_backend> backend_;
};

/// A copy that the host submits to a dma_queue.
struct dma_copy {
    weftio_dev_buf source{};
    std::uint64_t source_offset = 0; ///< in bytes, as all values below
    weftio_dev_buf destination{};
    std::uint64_t destination_offset = 0;
    std::uint64_t bytes = 0; ///< 1 .. WEFTIO_DEV_DMA_MOST_BYTES
};
/// A fill that the host submits to a dma_queue.
struct dma_fill {
    std::uint32_t pattern = 0; ///< its four bytes, as they lie in memory, fill the destination repeatedly
    weftio_dev_buf destination{};
    std::uint64_t destination_offset = 0;
    std::uint64_t bytes = 0;
};

struct dma_queue_options {
    std::uint32_t entries = 1024; ///< a power of two in 64..32768
    protection_domain domain{};   ///< entries may name regions of this domain only
};

/// A ring of copies and fills that a kernel owns.
///
/// Source and destination of an entry must lie in regions that are registered with the engine (memory_region), and the
/// region of the destination must have access::local_write. Any other entry fails without changing a byte, and later
/// entries are flushed. Copies of a queue are executed in order. Long copies are executed in parts, between which the
/// engine serves its other queues; a copy fails halfway if one of its regions is destroyed meanwhile. The destructor of
/// a region waits for a copy engine that uses its memory.
///
/// - Ownership: move-only; keeps its engine and its device alive. Committed entries are executed even if the kernel
///   that enqueued them has returned (inline mode: when the engine runs next). The destructor flushes entries that have
///   not been executed, and waits for one iteration of the engine and for copies that a copy engine has begun, at most
///   one second.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle.
class dma_queue {
 public:
    /// @throws weftio::error errc::invalid_argument `entries` is not a power of two in 64..32768; errc::out_of_memory
    dma_queue(const dma_engine& engine, const device& device, dma_queue_options options = {});
    dma_queue(dma_queue&&) noexcept;
    dma_queue& operator=(dma_queue&&) noexcept;
    ~dma_queue();

    /// The argument for a kernel; pass the queue itself to device::launch. If the device is "cpu", the host may also
    /// call the functions of weftio/device/dma.h with the handle, from one thread or several, provided no kernel uses
    /// the queue in weak mode.
    weftio_dev_dma* handle() const noexcept;
    weftio_dev_control* control() const noexcept;

    /// Enqueues and commits a copy or a fill from the host. The queue must be on device "cpu", and no kernel may use it
    /// in weak mode. Never blocks; in inline mode this call runs the engine. Any thread. Source and destination of a
    /// copy must not overlap.
    ///
    /// If an entry fails, the progress_engine names it. The entries behind it are flushed without a notification;
    /// counters() counts them.
    /// @param flags  WEFTIO_DEV_SEND_NOTIFY: notify the progress_engine that the queue is attached to when the entry is
    ///               done; WEFTIO_DEV_SEND_NONE: report failures only
    /// @return the position of the entry, for progress_engine and weftio_dev_dma_wait(); empty if the ring is full
    /// @throws weftio::error errc::invalid_argument the queue is on another device; `bytes` is 0 or too large, or
    ///         reaches beyond a buffer; `flags` has other bits; errc::device_error an entry has failed, or the queue
    ///         was stopped with its kernel (running_kernel::watch()): call reset()
    [[nodiscard]] std::optional<std::uint32_t> submit(const dma_copy& copy,
                                                      std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    [[nodiscard]] std::optional<std::uint32_t> submit(const dma_fill& fill,
                                                      std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);

    std::uint32_t entries() const noexcept;
    std::uint32_t number() const noexcept; ///< number of the queue at its engine

    /// Any thread; does not block.
    dma_counters counters() const;
    /// Whether an entry has failed or the queue was stopped; later entries are then flushed until reset(). Blocks for
    /// up to one iteration of the engine.
    bool failed() const;
    /// Makes the queue usable again after an error, at position 0 with fresh memory and a new handle(). Counters
    /// continue. A progress_engine stays attached; the positions that it names then start at 0 again. A kernel that
    /// still runs keeps the old memory, which the engine no longer reads. Blocks for up to one iteration of the engine,
    /// and until a copy engine has finished the copies that it has begun.
    /// @throws weftio::error errc::out_of_memory
    void reset();

 private:
    friend detail::internals;
    template <class Enqueue>
    std::optional<std::uint32_t> submit_by(std::uint32_t flags, Enqueue&& enqueue);

    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
