// Reads and writes of files that a file engine executes for kernels or for the host.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "weftio/counters.hpp"
#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/device/file.h"
#include "weftio/file.hpp"
#include "weftio/memory.hpp"

namespace weftio {

/// A read or a write that the host submits to a file_queue.
struct file_transfer {
    std::uint32_t file = 0;        ///< file::key()
    std::uint64_t file_offset = 0; ///< in bytes, as all values below
    weftio_dev_buf buffer{};
    std::uint64_t buffer_offset = 0;
    std::uint64_t bytes = 0; ///< 1 .. WEFTIO_DEV_FILE_MOST_BYTES
};

struct file_queue_options {
    std::uint32_t entries = 1024; ///< a power of two in 64..32768
    protection_domain domain{};   ///< entries may name regions of this domain only
};

/// A ring of reads, writes and syncs of files that a kernel owns.
///
/// An entry names a file of the engine by its key, and memory in a region that is registered with the engine
/// (memory_region); the region of a read needs access::local_write. The engine's thread executes entries by io_uring,
/// or by the engine's thread pool if the system refuses io_uring. The thread exists while the engine has queues or
/// regions. Memory that the CPU cannot access is staged: a copy engine of its device moves the bytes.
///
/// Entries of a queue are independent, and several are in flight at once; long ones are executed in parts. Entries
/// complete in order. An entry with WEFTIO_DEV_FILE_FENCE starts when all entries before it are done, and so does every
/// sync. The engine serves its queues in turn; each has up to 64 parts and 2 MiB in flight.
///
/// A read at the end of the file returns fewer bytes, without an error. A failed entry puts the queue in error until
/// reset(): entries in flight are still executed, all others are flushed, and weftio_dev_file_result() has the result
/// of each entry.
///
/// - Ownership: move-only; keeps its engine and its device alive. Committed entries are executed even if the kernel
///   that enqueued them has returned (inline mode: when the engine runs next). The destructor flushes entries that have
///   not begun, and waits for those in flight, at most one second. The destructors of their regions and files wait for
///   them without a time limit.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle.
class file_queue {
 public:
    /// @throws weftio::error errc::invalid_argument `entries` is not a power of two in 64..32768, or
    ///         file_engine_options has a core or a priority that does not exist; errc::permission_denied a real-time
    ///         priority without CAP_SYS_NICE; errc::out_of_memory; errc::device_error no thread can be started;
    ///         errc::closed the engine was made by the parent process; errc::not_supported the engine's `only` is
    ///         cufile
    file_queue(const file_engine& engine, const device& device, file_queue_options options = {});
    file_queue(file_queue&&) noexcept;
    file_queue& operator=(file_queue&&) noexcept;
    ~file_queue();

    /// The argument for a kernel; pass the queue itself to device::launch. If the device is "cpu", the host may also
    /// call the functions of weftio/device/file.h with the handle, from one thread or several, provided no kernel uses
    /// the queue in weak mode.
    weftio_dev_file_queue* handle() const noexcept;
    weftio_dev_control* control() const noexcept;

    /// Enqueues and commits a read, a write, or a sync of file `file` from the host. The queue must be on device "cpu",
    /// and no kernel may use it in weak mode. Never blocks; in inline mode this call runs the engine. Any thread.
    /// @param flags  WEFTIO_DEV_SEND_NONE, or any of WEFTIO_DEV_SEND_NOTIFY (notify the progress_engine that the queue
    ///               is attached to when the entry is done) and WEFTIO_DEV_FILE_FENCE
    /// @return the position of the entry, for progress_engine and weftio_dev_file_wait(); empty if the ring is full
    /// @throws weftio::error errc::invalid_argument the queue is on another device; `bytes` is 0 or too large, or
    ///         reaches beyond the buffer; `flags` has other bits; errc::device_error an entry has failed, or the queue
    ///         was stopped with its kernel (running_kernel::watch()): call reset()
    [[nodiscard]] std::optional<std::uint32_t> submit_read(const file_transfer& read,
                                                           std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    [[nodiscard]] std::optional<std::uint32_t> submit_write(const file_transfer& write,
                                                            std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    [[nodiscard]] std::optional<std::uint32_t> submit_sync(std::uint32_t file,
                                                           std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    /// Inline mode (file_engine_options::mode): runs the engine once, for all its queues. Returns 0 when there was
    /// nothing to do, else a measure of the work done. Any thread; concurrent calls run one after the other.
    /// @throws weftio::error errc::invalid_argument the engine has a thread
    unsigned turn() const;

    std::uint32_t entries() const noexcept;
    std::uint32_t number() const noexcept; ///< number of the queue at its engine

    /// Any thread; does not block.
    file_queue_counters counters() const;
    /// Whether an entry has failed or the queue was stopped; later entries are then flushed until reset(). Blocks for
    /// up to one iteration of the engine.
    bool failed() const;
    /// Makes the queue usable again after an error, at position 0 with fresh memory and a new handle(). Counters
    /// continue. A progress_engine stays attached; the positions that it names then start at 0 again. A kernel that
    /// still runs keeps the old memory, which the engine no longer reads. Blocks for up to one iteration of the engine,
    /// and until entries in flight have ended, at most one second.
    /// @throws weftio::error errc::out_of_memory
    void reset();

 private:
    friend detail::internals;
    std::optional<std::uint32_t> submit(const weftio_dev_file_request& request, std::uint32_t flags);

    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
