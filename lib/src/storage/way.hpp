// The interface of a way: what reads and writes files for the host's memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "weftio/file_result.hpp"

namespace weftio::devices {
class device_backend;
}

namespace weftio::storage {

class vendor_file;

/// How NVIDIA's library is called for an io.
struct vendor_use {
    const vendor_file* file = nullptr;
    std::byte* base = nullptr;                ///< of the registered memory that the bytes are in; nullptr: none is
    devices::device_backend* owner = nullptr; ///< of the memory; nullptr: the host
};

/// One system call's worth of work, or one call of NVIDIA's library.
struct io {
    enum class kind : std::uint8_t { read, write, sync, data_sync };
    kind what = kind::read;
    int fd = -1;
    std::uint64_t offset = 0;
    std::byte* address = nullptr;
    std::uint32_t bytes = 0;
    std::uint64_t tag = 0; ///< comes back with the result; below 2^63
    /// Names of the descriptor and of the memory, for ways that register them (registrations.hpp); 0: none. Memory is
    /// named where the page cache is avoided: elsewhere nothing is gained.
    std::uint64_t file = 0, memory = 0;
    /// Set: NVIDIA's library is called, `fd` is unused, and `address` is one that the owner has. Only make_posix() and
    /// make_with_aside() take such ios. The object must stay until the io has ended.
    const vendor_use* vendor = nullptr;
    bool by_threads = false; ///< make_with_aside(): not by the first way
};

struct io_done {
    std::uint64_t tag = 0;
    std::int64_t result = 0; ///< bytes, or -errno
};

/// Executes ios, which end in any order. Owned by one thread at a time. Never blocks but in wait(), and where io_uring
/// copies from the page cache inside flush(). The destructor waits for what is in flight.
class way {
 public:
    way() = default;
    way(const way&) = delete;
    way& operator=(const way&) = delete;
    virtual ~way() = default;

    /// Takes the io; it begins at the next flush() at the latest. False: `depth` are in flight.
    virtual bool submit(const io& io) = 0;
    virtual void flush() = 0;
    /// Takes results that are there; returns how many of `done` were set.
    virtual std::size_t reap(std::span<io_done> done) = 0;
    /// Ios whose result was not reaped.
    virtual std::size_t in_flight() const noexcept = 0;
    /// Waits until a result can be reaped, or until `timeout` is over; may return early. Flushes.
    virtual void wait(std::chrono::nanoseconds timeout) = 0;
    /// Asks for the end of the io with that tag. It still has its result: -ECANCELED if it was not executed.
    virtual void cancel(std::uint64_t tag) = 0;
    virtual file_way name() const noexcept = 0;
};

class registrations;

/// @param names  of what the ring may register, and outlives it; nullptr: nothing
/// @throws weftio::error errc::not_supported io_uring is refused: the text says with which errno, and why
std::unique_ptr<way> make_uring(unsigned depth, registrations* names = nullptr);

class posix_pool;

/// Threads that call pread and pwrite. They are started one by one, when there is work for another.
std::shared_ptr<posix_pool> make_posix_pool(unsigned threads);
/// A way of `depth` ios to the threads of `pool`, which other ways use too.
std::unique_ptr<way> make_posix(unsigned depth, std::shared_ptr<posix_pool> pool);
inline std::unique_ptr<way> make_posix(unsigned depth, unsigned threads)
{
    return make_posix(depth, make_posix_pool(threads));
}
/// Ios of the vendor, and those `by_threads`, go to `aside`, the others to `first`, whose name it has. Each takes as
/// many as it does alone.
std::unique_ptr<way> make_with_aside(std::unique_ptr<way> first, std::unique_ptr<way> aside);

/// Executes the io in the calling thread, and again after EINTR. @return bytes, or -errno
std::int64_t execute(const io& io) noexcept;

} // namespace weftio::storage
