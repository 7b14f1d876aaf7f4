// Copies of memory that kernels, or the host, have somebody else do.
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

/// Executes the copies of DMA queues. It needs no port, no NIC and no EAL.
///
/// Where the CPU sees both sides the engine's thread copies itself. Where it does not, as in a GPU's own memory
/// (memory_kind::device), a copy engine of that device copies while the thread goes on: from there, to there, within it,
/// or to another device of its kind. All that is due in a turn goes there together; up to four such batches are under
/// way. Pinned memory (memory_kind::cpu_device of that device) is the fastest other side; the copy engine cannot read
/// ordinary memory by itself, and the thread helps it.
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

    /// Inline mode: gives each queue one turn, of 64 entries and 128 KiB at most (16 MiB where a copy engine copies).
    /// Returns 0 when there was nothing to do, else a measure of what was. Any thread; one at a time has its turn.
    /// @throws weftio::error errc::invalid_argument the engine has a thread
    unsigned turn() const;

 private:
    friend detail::internals;

    std::shared_ptr<nic::dma_backend> backend_;
};

/// What a dma_queue is asked for by the host.
struct dma_copy {
    weftio_dev_buf source{};
    std::uint64_t source_offset = 0; ///< bytes, as all that follow
    weftio_dev_buf destination{};
    std::uint64_t destination_offset = 0;
    std::uint64_t bytes = 0; ///< 1 .. WEFTIO_DEV_DMA_MOST_BYTES
};
struct dma_fill {
    std::uint32_t pattern = 0; ///< its four bytes, as they lie in memory, again and again
    weftio_dev_buf destination{};
    std::uint64_t destination_offset = 0;
    std::uint64_t bytes = 0;
};

struct dma_queue_options {
    std::uint32_t entries = 1024; ///< a power of two in 64..32768
    protection_domain domain{};   ///< entries may name regions of this one only
};

/// A ring of copies that a kernel owns.
///
/// Source and destination of an entry lie in regions that the engine has been told of (memory_region); the destination's
/// has access::local_write. An entry that names anything else fails, with what is behind it, and changes no byte. Copies
/// of a queue happen in order. Long ones are done in parts, between which the engine serves its other queues; one whose
/// region ends meanwhile fails half done. A region whose memory a copy engine works at ends when that is done.
///
/// - Ownership: move-only; keeps its engine and its device alive. Entries that were committed are executed also after
///   the kernel that enqueued them has returned (inline: by later turns); the destructor flushes what has not been
///   copied, and waits for a turn and for what a copy engine has begun, a second at most.
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

    /// Enqueues a copy, or a fill, and lets the engine begin. From the host: the queue is one of device "cpu", and no
    /// kernel uses it in weak mode. Does not block, but in inline mode, where the engine has its turn inside. Any thread.
    /// Source and destination of a copy must not overlap.
    ///
    /// Of a queue that fails, the progress_engine names the entry that failed; the entries behind it are flushed, and
    /// none of them is told one by one. counters() counts them.
    /// @param flags  WEFTIO_DEV_SEND_NOTIFY: a progress_engine that the queue is attached to tells when it is done;
    ///               WEFTIO_DEV_SEND_NONE: nothing is told but a failure
    /// @return the position, as progress_engine and weftio_dev_dma_wait() have it; nothing: the ring is full
    /// @throws weftio::error errc::invalid_argument the queue is one of another device; `bytes` is 0, too many, or
    ///         reaches beyond a buffer; `flags` are others; errc::device_error an entry has failed, or the queue was
    ///         stopped for its kernel (running_kernel::watch()): see reset()
    [[nodiscard]] std::optional<std::uint32_t> submit(const dma_copy& copy,
                                                      std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    [[nodiscard]] std::optional<std::uint32_t> submit(const dma_fill& fill,
                                                      std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);

    std::uint32_t entries() const noexcept;
    std::uint32_t number() const noexcept; ///< at its engine

    /// Any thread; does not block.
    dma_counters counters() const;
    /// Whether an entry has failed, or the queue was stopped: later ones are flushed until reset(). Blocks as long as one turn.
    bool failed() const;
    /// Brings the queue back after an error, at position 0 with fresh memory and another handle(); counters go on, and
    /// a progress_engine stays attached: what it names from then on are positions that begin at 0 again. A
    /// kernel that still runs keeps the old memory, which the engine no longer reads. Blocks as long as one turn, and
    /// as a copy engine works at what it has begun.
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
