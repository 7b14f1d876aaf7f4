// Reads and writes of files into and from memory that kernels use.
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
/// - Ownership: a cheap handle; files, buffers and batches that are made on it keep it alive.
/// - Threads: any.
/// - Processes: not usable in a child of fork(), where every call throws errc::closed: make a new engine there.
class file_engine {
 public:
    /// @throws weftio::error errc::invalid_argument an option has an invalid value, or the configuration file has a
    ///         syntax error; errc::not_found the configuration file does not exist; errc::not_supported the way in
    ///         `only` is unavailable, or `strict` is set and the system refuses io_uring (the text says why);
    ///         errc::out_of_memory
    explicit file_engine(file_engine_options options = {});

    /// Whether operations can use `way`.
    bool has(file_way way) const noexcept;
    const file_engine_options& options() const noexcept; ///< the options in force
    /// Exact once the operations have ended. Never blocks.
    file_counters counters() const noexcept;
    /// Waits for stream-ordered operations that run on the engine's thread: those of the null stream without CUDA.
    void drain() const;

 private:
    friend detail::internals;

    std::shared_ptr<storage::context> context_;
};

/// Registers memory with an engine: operations then know the kind of the memory without asking the CUDA driver, and
/// cannot go beyond its end.
///
/// - Ownership: move-only; keeps the engine and a `memory` alive. Bytes at an address belong to the caller. They must
///   outlive this object and the operations that use them, and their mapping must not change: if io_uring has
///   registered the pages, it reads and writes those pages.
/// - Threads: any, one at a time. The destructor does not wait for operations.
class file_buffer {
 public:
    /// Memory of the host, or from cudaMalloc, cudaMallocHost or cudaMallocManaged.
    /// @throws weftio::error errc::invalid_argument `address` is null, `bytes` is 0, or another file_buffer of the
    ///         engine has some of the bytes; errc::not_reachable the CUDA allocation is shorter than `bytes`
    file_buffer(const file_engine& engine, void* address, std::size_t bytes);
    /// @throws weftio::error errc::invalid_argument `memory` is empty
    file_buffer(const file_engine& engine, const memory& memory);
    file_buffer(file_buffer&&) noexcept;
    file_buffer& operator=(file_buffer&&) noexcept;
    ~file_buffer();

    void* address() const noexcept; ///< device address of the first byte
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
    /// Memory of the host or of CUDA. If a file_buffer contains the address, its registration is used.
    file_memory(void* address) noexcept : address_(address) {}
    /// Bytes of a memory (of any device and kind) or of a file_buffer, from `offset` on. Operations that reach beyond
    /// its end fail with EINVAL.
    file_memory(const memory& memory, std::size_t offset = 0) noexcept;
    file_memory(const file_buffer& buffer, std::size_t offset = 0) noexcept;
    /// Memory that is only read, as the source of a write to a file.
    static file_memory source(const void* address) noexcept { return {const_cast<void*>(address)}; }

 private:
    friend detail::internals;

    void* address_ = nullptr; ///< without offset_
    std::size_t offset_ = 0;
    std::size_t bytes_ = SIZE_MAX; ///< from address_ on
    std::shared_ptr<const devices::memory_block> block_{};
};

/// An open file that an engine reads and writes, by a descriptor of the caller: on any file system, a block device, or
/// a file in /dev/shm.
///
/// The descriptor is not duplicated. It must stay open as long as this object; if it is closed earlier, an operation
/// may fail with EBADF, access the original file (io_uring has registered the descriptor), or access another file that
/// has been given the same number. Operations may differ in this.
///
/// Some operations need a second descriptor: those that are not aligned for O_DIRECT, and large ones with
/// file_engine_options::reopen_direct. It is opened through /proc/self/fd when first needed, and accesses the original
/// file even after the caller has closed the first one. When the second descriptor is closed, the process loses its
/// fcntl(F_SETLK) locks on the file, as POSIX requires.
///
/// - Ownership: move-only; keeps the engine alive. It may be destroyed before operations of batches and streams have
///   ended, but the descriptor must stay open until then. Entries of a file_queue that have not begun when it is
///   destroyed fail.
/// - Threads: any, concurrently. Operations on overlapping bytes have no order.
/// - Signals: a call continues after EINTR.
class file {
 public:
    /// @throws weftio::error errc::invalid_argument the descriptor is not open, is neither a regular file nor a block
    ///         device, or was opened with O_PATH, or for writing with O_APPEND (which ignores offsets)
    file(const file_engine& engine, int descriptor);
    file(file&&) noexcept;
    file& operator=(file&&) noexcept;
    ~file();

    /// Reads `bytes` bytes at `offset`. Blocks. A transfer of up to one part is one system call of the calling thread.
    /// A larger one is spread: over io_uring if it avoids the page cache, else over the engine's threads. Offset, size
    /// and memory may have any alignment: with O_DIRECT, the first block, the last block, and memory that is not
    /// aligned like the offset are copied through a bounce buffer.
    /// @return the result; fewer bytes without an error: the file ends there. O_DIRECT may overwrite memory after the
    ///         bytes read, up to the end of the request. Errors: those of pread(2); EFAULT the memory does not exist;
    ///         EINVAL offset + bytes overflows, or lies outside the file_memory; ENOTSUP the operation would fall back
    ///         to another way (file_fall), and `strict` is set; EIO the drive, or the device's copy engine, has failed
    file_result read(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const;
    /// Writes `bytes` bytes at `offset`; as read() otherwise. Errors: also those of pwrite(2), such as ENOSPC. With
    /// O_DIRECT, whole pages are written directly first, and then the edges through the page cache.
    file_result write(const file_memory& memory, std::size_t bytes, std::uint64_t offset) const;
    file_result write(const void* address, std::size_t bytes, std::uint64_t offset) const
    {
        return write(file_memory::source(address), bytes, offset);
    }
    /// Makes what was written durable: fsync(2), or fdatasync(2) if `data_only`. Blocks.
    file_result sync(bool data_only = false) const;

    /// Addresses of the arguments of a stream-ordered operation. The arguments are read when the stream reaches the
    /// operation, and must stay valid until then; `result` must stay valid until the operation has ended.
    struct at_execution {
        const std::size_t* bytes;
        const std::int64_t* offset;        ///< in the file
        const std::int64_t* memory_offset; ///< from the start of the memory
        std::int64_t* result;              ///< receives the number of bytes, or -errno
    };
    /// Reads in the order of a CUDA stream (CUstream or cudaStream_t): after everything enqueued earlier, and before
    /// everything enqueued later. Does not block. Without a CUDA context in the process the stream must be null; such
    /// operations run one after another on a thread of the engine (see file_engine::drain()). The file object may be
    /// destroyed before the operation has ended.
    /// @throws weftio::error errc::invalid_argument a null pointer, or a stream without a CUDA driver;
    ///         errc::device_error the CUDA driver refuses the operation; errc::out_of_memory
    void read_on(void* stream, const file_memory& memory, const at_execution& arguments) const;
    void write_on(void* stream, const file_memory& memory, const at_execution& arguments) const;
    int descriptor() const noexcept;    ///< the caller's
    bool direct() const noexcept;       ///< whether the descriptor was opened with O_DIRECT
    std::uint32_t key() const noexcept; ///< the key that names the file in entries of a file_queue; host byte order

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
    void* cookie = nullptr; ///< returned with the event
};

/// The end of an operation of a batch. `result.error` is ECANCELED if it was canceled.
struct file_event {
    void* cookie = nullptr;
    file_result result{};
};

/// A batch of operations that are in flight together.
///
/// - Ownership: move-only; keeps the engine alive, and the files and memories of operations that are in flight. The
///   destructor cancels operations, and waits for those that cannot be canceled; events that were not taken are lost.
/// - Threads: any, concurrently. submit() and cancel() wait up to a millisecond for a status() call that waits.
class file_batch {
 public:
    /// @param capacity  maximum number of operations that are in flight or whose events were not taken: 1 to 65536
    /// @throws weftio::error errc::invalid_argument another capacity; errc::out_of_memory
    file_batch(const file_engine& engine, unsigned capacity);
    file_batch(file_batch&&) noexcept;
    file_batch& operator=(file_batch&&) noexcept;
    ~file_batch();

    /// Starts all of `operations`, or none. Does not wait for them to end, but copies from and to the page cache may
    /// happen inside this call. An operation that fails at once has an event too.
    /// @return false: the capacity does not suffice; take events first
    /// @throws weftio::error errc::invalid_argument an operation without a file, or with a file of another engine
    [[nodiscard]] bool submit(std::span<const file_operation> operations);
    /// Takes events, in the order in which operations end. Blocks until `least` events have been taken, `timeout` has
    /// passed, or nothing is in flight. A timeout of 0 does not block.
    /// @return number of elements of `events` that were set
    std::size_t status(std::size_t least, std::span<file_event> events, std::chrono::nanoseconds timeout);
    /// Cancels operations that have not begun, and asks the system to cancel the rest. Each operation still has its
    /// event, with ECANCELED if it was not completed. Does not block.
    void cancel();

    unsigned capacity() const noexcept;
    std::size_t in_flight() const; ///< operations that have not ended

 private:
    struct state;
    std::shared_ptr<state> state_; ///< its own: shared only to be left alone in a child of fork()
};

} // namespace weftio
