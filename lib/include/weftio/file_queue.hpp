// Reads and writes of files that kernels, or the host, have somebody else do.
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

/// What a file_queue is asked for by the host.
struct file_transfer {
    std::uint32_t file = 0;        ///< file::key()
    std::uint64_t file_offset = 0; ///< bytes, as all that follow
    weftio_dev_buf buffer{};
    std::uint64_t buffer_offset = 0;
    std::uint64_t bytes = 0; ///< 1 .. WEFTIO_DEV_FILE_MOST_BYTES
};

struct file_queue_options {
    std::uint32_t entries = 1024; ///< a power of two in 64..32768
    protection_domain domain{};   ///< entries may name regions of this one only
};

/// A ring of reads, writes and syncs of files that a kernel owns.
///
/// An entry names a file of the engine by its key, and memory of a region that was registered with the engine
/// (memory_region); that of a read has access::local_write. The engine's thread executes entries by io_uring, or by the
/// engine's pool of threads where io_uring is refused; the thread exists while the engine has queues or regions. Memory
/// that the CPU does not see is staged: a copy engine of its device carries the bytes.
///
/// Entries of a queue are independent, and several are in flight at once, long ones in parts. They complete in order. An
/// entry with WEFTIO_DEV_FILE_FENCE begins when all entries before it are done, and so does a sync. Queues of an engine
/// share its way in turns: each has up to 64 parts and 2 MiB in flight.
///
/// A read at the end of the file is short, and no error. An entry that fails ends the queue: what is in flight is done
/// all the same, and weftio_dev_file_result() tells of each entry what became of it; the rest is flushed until reset().
///
/// - Ownership: move-only; keeps its engine and its device alive. Entries that were committed are executed also after
///   the kernel that enqueued them has returned (inline: by later turns). The destructor flushes what has not begun, and
///   waits for what is in flight, a second at most; the regions that later bytes lie in wait for them without a bound,
///   and so do files.
/// - Threads: create, move, reset and destroy from one thread at a time, while no kernel holds the handle.
class file_queue {
 public:
    /// @throws weftio::error errc::invalid_argument `entries` is not a power of two in 64..32768, or a core or priority of
    ///         file_engine_options that does not exist; errc::permission_denied a real-time priority without
    ///         CAP_SYS_NICE; errc::out_of_memory; errc::device_error no thread can be made; errc::closed the engine is
    ///         that of a parent process; errc::not_supported its `only` is cufile
    file_queue(const file_engine& engine, const device& device, file_queue_options options = {});
    file_queue(file_queue&&) noexcept;
    file_queue& operator=(file_queue&&) noexcept;
    ~file_queue();

    /// What a kernel is given; pass the queue itself to device::launch. Of a queue on device "cpu" the host itself may
    /// call the functions of weftio/device/file.h with it, from one thread or several, if no kernel uses it in weak mode.
    weftio_dev_file_queue* handle() const noexcept;
    weftio_dev_control* control() const noexcept;

    /// Enqueues a read, a write, or a sync of file `file`, and lets the engine begin. From the host: the queue is one of
    /// device "cpu", and no kernel uses it in weak mode. Does not block, but in inline mode, where the engine has its
    /// turn inside. Any thread.
    /// @param flags  any of WEFTIO_DEV_SEND_NOTIFY: a progress_engine that the queue is attached to tells when it is
    ///               done; WEFTIO_DEV_FILE_FENCE; or WEFTIO_DEV_SEND_NONE
    /// @return the position, as progress_engine and weftio_dev_file_wait() have it; nothing: the ring is full
    /// @throws weftio::error errc::invalid_argument the queue is one of another device; `bytes` is 0, too many, or
    ///         reaches beyond the buffer; `flags` are others; errc::device_error an entry has failed, or the queue was
    ///         stopped for its kernel (running_kernel::watch()): see reset()
    [[nodiscard]] std::optional<std::uint32_t> submit_read(const file_transfer& read,
                                                           std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    [[nodiscard]] std::optional<std::uint32_t> submit_write(const file_transfer& write,
                                                            std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    [[nodiscard]] std::optional<std::uint32_t> submit_sync(std::uint32_t file,
                                                           std::uint32_t flags = WEFTIO_DEV_SEND_NOTIFY);
    /// Inline mode (file_engine_options::mode): gives each queue of the engine one turn. Returns 0 when there was nothing
    /// to do, else a measure of what was. Any thread; one at a time has its turn.
    /// @throws weftio::error errc::invalid_argument the engine has a thread
    unsigned turn() const;

    std::uint32_t entries() const noexcept;
    std::uint32_t number() const noexcept; ///< at its engine

    /// Any thread; does not block.
    file_queue_counters counters() const;
    /// Whether an entry has failed, or the queue was stopped: later ones are flushed until reset(). Blocks as long as one
    /// turn.
    bool failed() const;
    /// Brings the queue back after an error, at position 0 with fresh memory and another handle(); counters go on, and
    /// a progress_engine stays attached: what it names from then on are positions that begin at 0 again. A
    /// kernel that still runs keeps the old memory, which the engine no longer reads. Blocks as long as one turn, and
    /// until what is in flight has ended, a second at most.
    /// @throws weftio::error errc::out_of_memory
    void reset();

 private:
    friend detail::internals;
    std::optional<std::uint32_t> submit(const weftio_dev_file_request& request, std::uint32_t flags);

    struct state;
    std::shared_ptr<state> state_;
};

} // namespace weftio
