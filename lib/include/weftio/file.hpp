// Files, read into and written from the memory that kernels use.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weftio/detail/internals.hpp"
#include "weftio/device.hpp"
#include "weftio/file_result.hpp"
#include "weftio/options.hpp"

namespace weftio {

/// Executes operations on files. It needs no port, no NIC, no EAL and no GPU.
///
/// - Ownership: a cheap handle; files, buffers and batches made on it keep it alive.
/// - Threads: any.
/// - Processes: of no use in a child of fork(), where each call throws errc::closed: make another there.
class file_engine {
 public:
    /// @throws weftio::error errc::invalid_argument an option's value, or a configuration file with a syntax error;
    ///         errc::not_found no such configuration file; errc::not_supported `only` names a way that is unavailable,
    ///         or `strict` is set and io_uring is refused, with the reason; errc::out_of_memory
    explicit file_engine(file_engine_options options = {});

    /// Whether operations may go that way.
    bool has(file_way way) const noexcept;
    const file_engine_options& options() const noexcept; ///< as they are in force
    /// Exact once the operations have ended. Never blocks.
    file_counters counters() const noexcept;
    /// Waits for stream-ordered operations that run on the engine's thread: those of the null stream without CUDA.
    void drain() const;

 private:
    friend detail::internals;

    std::shared_ptr<storage::context> context_;
};

/// Registers memory with an engine: operations find its kind by the address, without asking the CUDA driver, and are
/// kept within it.
///
/// - Ownership: move-only; keeps the engine alive, and a `memory`. Bytes at an address are the caller's: they must
///   outlive it, and the operations that use them, and stay mapped as they are: io_uring may have registered them, and
///   then reads and writes those pages.
/// - Threads: any, one at a time. The destructor does not wait for operations.
class file_buffer {
 public:
    /// Memory of the host, of cudaMalloc, cudaMallocHost or cudaMallocManaged.
    /// @throws weftio::error errc::invalid_argument `address` is null or `bytes` is 0, or bytes of it are in another
    ///         file_buffer of the engine; errc::not_reachable a CUDA allocation is shorter
    file_buffer(const file_engine& engine, void* address, std::size_t bytes);
    /// @throws weftio::error errc::invalid_argument it is empty
    file_buffer(const file_engine& engine, const memory& memory);
    file_buffer(file_buffer&&) noexcept;
    file_buffer& operator=(file_buffer&&) noexcept;
    ~file_buffer();

    void* address() const noexcept; ///< of the first byte, as kernels have it
    std::size_t bytes() const noexcept;

 private:
    friend class file_memory;
    friend detail::internals;

    struct state;
    std::unique_ptr<state> state_;
};

/// The memory side of an operation. A value: it keeps a `memory` alive, and nothing else.
class file_memory {
 public:
    /// Memory of the host, or of CUDA: a file_buffer that has the address is used.
    file_memory(void* address) noexcept : address_(address) {}
    /// A memory of any device and kind, from byte `offset` on; likewise a buffer. Operations that reach beyond its end
    /// fail with EINVAL.
    file_memory(const memory& memory, std::size_t offset = 0) noexcept;
    file_memory(const file_buffer& buffer, std::size_t offset = 0) noexcept;
    /// What is only written to a file.
    static file_memory source(const void* address) noexcept { return {const_cast<void*>(address)}; }

 private:
    friend detail::internals;

    void* address_ = nullptr; ///< without offset_
    std::size_t offset_ = 0;
    std::size_t bytes_ = SIZE_MAX; ///< behind address_
    std::shared_ptr<const devices::memory_block> block_{};
};

/// A descriptor that an engine reads and writes. Any file system, block device or file on /dev/shm.
///
/// The descriptor stays the caller's: it is not duplicated, and must stay open as long as the file. Operations on one
/// that was closed too early fail with EBADF, or reach the first file still (io_uring has registered the descriptor), or
/// another one, if the number was taken again: one operation may do this and the next that. Operations that are not
/// aligned for O_DIRECT, and file_engine_options::reopen_direct, need a second descriptor. The file opens it through
/// /proc/self/fd when first needed; what goes by it reaches the first file also after the caller has closed his. When
/// that one is closed the process loses its fcntl(F_SETLK) locks of the file, as POSIX demands.
///
/// - Ownership: move-only; keeps the engine alive. It may end before operations of batches and streams; the descriptor
///   must not. Of a file_queue, entries that have not begun when it ends fail.
/// - Threads: any, together. Operations on overlapping bytes have no order.
/// - Signals: a call goes on after EINTR.
class file {
 public:
    /// @throws weftio::error errc::invalid_argument the descriptor is not open, is neither a regular file nor a block
    ///         device, was opened with O_PATH, or for writing with O_APPEND, which ignores offsets
    file(const file_engine& engine, int descriptor);
    file(file&&) noexcept;
    file& operator=(file&&) noexcept;
    ~file();

    /// Reads `bytes` bytes at `offset`. Blocks. Up to a part is one system call of the calling thread. Larger transfers
    /// are spread: over io_uring where they avoid the page cache, else over the engine's threads. Offset, size and
    /// memory may have any alignment: with O_DIRECT the first and the last block are bounced, and so is memory that is
    /// not aligned like the offset.
    /// @return fewer bytes without an error: the file ends there. O_DIRECT may overwrite the memory behind them, as far
    ///         as the operation reaches. Errors: those of pread(2); EFAULT the memory is absent; EINVAL offset + bytes
    ///         overflows, or lies outside the file_memory; ENOTSUP it would fall, and `strict` is set; EIO the drive,
    ///         or the device's copy engine, has failed
    file_result read(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const;
    /// Writes, likewise. Errors: those of pwrite(2) too, as ENOSPC. With O_DIRECT whole pages are written directly; the
    /// edges go through the page cache, after the middle.
    file_result write(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const;
    file_result write(const void* address, std::size_t bytes, std::uint64_t offset) const
    {
        return write(file_memory::source(address), bytes, offset);
    }
    /// Makes what was written durable: fsync(2), or fdatasync(2) if `data_only`. Blocks.
    file_result sync(bool data_only = false) const;

    /// Where the arguments of a stream-ordered operation lie. They are read when the stream has come to it, and must
    /// stay until then. `result` must stay until the operation has ended.
    struct at_execution {
        const std::size_t* bytes;
        const std::int64_t* offset;        ///< in the file
        const std::int64_t* memory_offset; ///< from the start of the memory
        std::int64_t* result;              ///< gets the bytes, or -errno
    };
    /// Reads in the order of a CUDA stream (CUstream or cudaStream_t): after what was enqueued before, and before what
    /// is enqueued afterwards. Does not block. Without a CUDA context in the process the stream must be null: such
    /// operations run one after another, on a thread of the engine (see file_engine::drain()). The file may end before
    /// them.
    /// @throws weftio::error errc::invalid_argument a null pointer, or a stream without a CUDA driver;
    ///         errc::device_error the CUDA driver refuses the operation; errc::out_of_memory
    void read_on(void* stream, const file_memory& memory, const at_execution& arguments) const;
    void write_on(void* stream, const file_memory& memory, const at_execution& arguments) const;
    int descriptor() const noexcept;    ///< the caller's
    bool direct() const noexcept;       ///< whether it was opened with O_DIRECT
    std::uint32_t key() const noexcept; ///< by which entries of a file_queue name the file, in host byte order

 private:
    friend detail::internals;

    std::shared_ptr<storage::open_file> file_;
};

/// One operation of a batch.
struct file_operation {
    enum class kind : std::uint8_t { read, write };
    kind what = kind::read;
    const file* on = nullptr;
    file_memory memory{nullptr};
    std::size_t bytes = 0;
    std::uint64_t offset = 0;
    void* cookie = nullptr; ///< comes back with the event
};

/// An operation of a batch that has ended: `result.error` ECANCELED tells that it was canceled.
struct file_event {
    void* cookie = nullptr;
    file_result result{};
};

/// Operations that are in flight together.
///
/// - Ownership: move-only; keeps the engine alive, and the files and memories of operations that are in flight. The
///   destructor cancels, and waits for what cannot be canceled; events that were not taken are lost.
/// - Threads: any, together: submit() and cancel() wait up to a millisecond for a status() that waits.
class file_batch {
 public:
    /// @param capacity  operations that are in flight or whose events were not taken, at most: 1 to 65536
    /// @throws weftio::error errc::invalid_argument another capacity; errc::out_of_memory
    file_batch(const file_engine& engine, unsigned capacity);
    file_batch(file_batch&&) noexcept;
    file_batch& operator=(file_batch&&) noexcept;
    ~file_batch();

    /// Begins all of `operations`, or none. Does not wait for them; copies into the page cache, and reads from it, may
    /// be done inside. What fails at once has an event too.
    /// @return false: there is no room for so many; take events first
    /// @throws weftio::error errc::invalid_argument an operation without a file, or with one of another engine
    [[nodiscard]] bool submit(std::span<const file_operation> operations);
    /// Takes events in the order in which operations end. Waits until there are `least` events of this call, `timeout`
    /// is over, or nothing is in flight. A timeout of 0 does not wait.
    /// @return how many of `events` were set
    std::size_t status(std::size_t least, std::span<file_event> events, std::chrono::nanoseconds timeout);
    /// Cancels what has not begun, and asks the system to cancel the rest; each operation still has its event, with
    /// ECANCELED if it was not completed. Does not wait.
    void cancel();

    unsigned capacity() const noexcept;
    std::size_t in_flight() const; ///< operations that have not ended

 private:
    struct state;
    std::shared_ptr<state> state_; ///< its own: shared only to be left alone in a child of fork()
};

} // namespace weftio
