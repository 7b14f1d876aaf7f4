// Registrations that are kept: memory is registered once, and given back when its room is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "weftio/access.hpp"
#include "weftio/detail/internals.hpp"

namespace weftio {

namespace registrations {
class cache;
class gpu_caches;
struct node;
} // namespace registrations

/// How a registration_cache learns that memory is gone.
enum class registration_staleness : std::uint8_t {
    close_first, ///< the program promises to call invalidate() first; costs nothing
    /// Linux tells it (userfaultfd with events): munmap(), mremap() that moves, brk() and madvise() that drops
    /// pages, whoever calls them, also free() and memory allocators. Not seen are mprotect(), truncation of a file,
    /// fallocate(), and madvise(MADV_GUARD_INSTALL) (Linux 6.13), which drops pages without an event. When a call that
    /// is seen has returned, no get() returns the old registration any more; remote keys of these bytes are withdrawn
    /// soon after, also while handles have them. Works for private anonymous memory, from Linux 5.19 on for shared
    /// memory and huge pages, too; not for shmat(), pages of a file, or pages that another userfaultfd has. Each such
    /// call on registered pages waits for a thread of the cache to read its event.
    userfault,
};

/// How a registration_cache learns that memory of a GPU is gone.
enum class gpu_staleness : std::uint8_t {
    buffer_id, ///< each get() asks the driver whether the memory is the same
    /// The driver's functions that free memory of GPUs come to the cache before they act, whoever calls them, by
    /// whatever pointer: cuMemFree(), cuMemFreeAsync(), cuMemUnmap(), cuIpcCloseMemHandle(), cuCtxDestroy(),
    /// cuDevicePrimaryCtxReset(), and cuDevicePrimaryCtxRelease() if it was the last one. What was made from the memory
    /// then ends as revoke() ends it, on the thread that frees, which waits for up to one iteration of each engine and
    /// for no GPU. get() asks the driver nothing, unless a context has ended or a module was unloaded since. For that,
    /// the first bytes of these functions are changed while such a cache exists. x86-64 only. Do not free memory of a
    /// GPU in an engine's thread, and hold no lock then that on_revoked takes.
    seen_frees,
};

struct registration_cache_options {
    /// Bytes of pages of the host that may be registered at a time, at least a page. Pages of several registrations
    /// count once for each. This is book-kept: software NICs do not pin pages.
    std::size_t budget_bytes = std::size_t{1} << 30;
    protection_domain domain{}; ///< of all keys; queues of this domain may use them
    registration_staleness staleness = registration_staleness::close_first;
    gpu_staleness staleness_of_gpus = gpu_staleness::buffer_id; ///< of memory of add_memory_of()
    /// Called for each remote key that is withdrawn while handles have it, once NICs refuse it: by revoke(), or when
    /// the memory is gone. Of memory of a GPU, it is called for local keys, too. On the thread that calls revoke() or
    /// get(), on one of the cache, or on the one that frees (gpu_staleness::seen_frees); without its lock. It may use
    /// the cache, but not end it.
    std::function<void(std::uint32_t rkey)> on_revoked{};
};

/// Counts since the cache was made, and what is registered now.
struct registration_cache_counters {
    std::uint64_t hits = 0;          ///< get() for which no pages were registered
    std::uint64_t misses = 0;        ///< get() for which pages were registered
    std::uint64_t remote_keys = 0;   ///< remote keys made
    std::uint64_t evictions = 0;     ///< registrations given back for the budget
    std::uint64_t invalidations = 0; ///< registrations of pages dropped by invalidate(), revoke() or a change of memory
    std::uint64_t revocations = 0;   ///< keys withdrawn while handles had them
    std::uint64_t bytes = 0;         ///< now: bytes of registered pages and allocations, as they are book-kept
    std::uint64_t registrations = 0; ///< now: registrations of pages, and remote keys
};

/// A handle of registered bytes. While it exists, its keys stay valid.
///
/// - Ownership: move-only; it may outlive its cache, and then keeps what it needs of it. The memory belongs to the
///   caller. An empty handle (moved from, or made by default) has keys 0.
/// - Threads: any, one at a time. The destructor takes no lock, unless it ends a remote key or a registration that the
///   cache has dropped: that runs between two iterations of each engine, as the destructor of memory_region does.
class registration {
 public:
    registration() noexcept = default;
    registration(registration&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
    registration& operator=(registration&& other) noexcept
    {
        registration old(std::move(*this));
        node_ = std::exchange(other.node_, nullptr);
        return *this;
    }
    ~registration()
    {
        if (node_)
            give_back(*node_);
    }

    explicit operator bool() const noexcept { return node_ != nullptr; }
    /// The key for entries of the program's own queues, in host byte order, as memory_region::lkey(). It names the
    /// whole pages around the bytes, and may name more: neighbors share a registration. It has access::local_write if
    /// that was asked for, or if the neighbors have it. Entries name bytes by their addresses in the program.
    std::uint32_t lkey() const noexcept;
    /// The key for peers, in host byte order: exactly the bytes and the rights that get() was asked for. 0 if no right
    /// beside access::local_write was asked for. It ends with the last handle of the same address, bytes and rights.
    std::uint32_t rkey() const noexcept;
    /// The keys at one port or engine of the cache, if its NICs are not all software NICs.
    /// @throws weftio::error errc::invalid_argument the cache does not register with it, or the handle is empty or has
    ///         no such key
    template <class Nic>
    std::uint32_t lkey(const Nic& nic) const
    {
        return key_at(false, nic);
    }
    template <class Nic>
    std::uint32_t rkey(const Nic& nic) const
    {
        return key_at(true, nic);
    }

 private:
    friend class registration_cache;
    explicit registration(registrations::node* node) noexcept : node_(node) {}
    static void give_back(registrations::node& node) noexcept;
    std::uint32_t key_at(bool remote, const port& port) const;
    std::uint32_t key_at(bool remote, const dma_engine& engine) const;
    std::uint32_t key_at(bool remote, const file_engine& engine) const;

    registrations::node* node_ = nullptr; ///< in the cache, which keeps it as long as it is held
};

/// Keeps memory of the host and of GPUs registered with ports and engines, so that registering the same bytes again
/// costs nothing.
///
/// get() registers whole pages, and gives them back lazily: when the budget is reached, the least recently used ones
/// that nobody holds. Registrations that touch or overlap become one if all of their pages allow it. Remote keys are
/// not kept beyond their last handle, because a peer could use them.
///
/// The program promises to call invalidate() before it unmaps or frees registered memory that it does not hold a handle
/// of (registration_staleness::close_first). Else a later get() of other memory at the same address returns the old
/// registration, which on a NIC that pins pages names the old memory.
///
/// Memory of GPUs (add_memory_of()) is registered by whole allocations, and needs no such promise for get(): unless the
/// allocation was made by that device object, each get() asks the driver for its buffer ID, which no other allocation
/// ever has; for memory that cuMemMap() has mapped, it asks which physical memory is mapped there, and where. If the
/// memory was freed, or other memory is there, also on another GPU, everything made from it ends as revoke() ends it.
/// Nothing tells that memory was freed before the next get() of it: call revoke() before cudaFree() or cuMemUnmap()
/// while peers or queues may use its keys, or choose gpu_staleness::seen_frees.
///
/// - Ownership: move-only; keeps its ports, engines and GPUs alive. The destructor gives back what nobody holds, and
///   waits for copy engines that use it, at most one second per GPU; handles give back the rest.
/// - Threads: any, also at once, except for constructors, moves, register_with() and the destructor. A get() that
///   registers nothing takes no lock. One that registers takes the lock of the cache, and does not stop engines, unless
///   it evicts.
/// - Processes: a child of fork() must not use the cache.
class registration_cache {
 public:
    /// Registers with no port or engine until register_with().
    /// @throws weftio::error errc::invalid_argument the budget is below a page; errc::permission_denied,
    ///         errc::not_supported the kernel or the container refuses userfaultfd; errc::out_of_memory
    explicit registration_cache(registration_cache_options options = {});
    /// Registers with one port. Errors: as above.
    explicit registration_cache(const port& port, registration_cache_options options = {});
    registration_cache(registration_cache&&) noexcept;
    registration_cache& operator=(registration_cache&&) noexcept;
    ~registration_cache();

    /// Registers with a further port or engine, too. Call it before the first get().
    /// @throws weftio::error errc::in_use something is registered
    void register_with(const port& port);
    void register_with(const dma_engine& engine);
    void register_with(const file_engine& engine);

    /// Lets get() take memory of this GPU ("cuda:N"): of cudaMalloc() and device::allocate(), and mappings of
    /// cuMemMap(), each as a whole. A copy engine of the GPU moves the bytes, so ports send from it, and DMA and file
    /// engines read and write it; queue pairs refuse it. Call it before the first get().
    /// @param budget_bytes  may be registered at a time: each allocation counts as the blocks of 64 KiB that it
    ///                      touches. 0: three quarters of what NVML reports as free of the GPU's BAR1 now; without NVML
    ///                      half of BAR1. This is book-kept: nothing here makes the driver pin memory or use BAR1.
    /// Makes what ports and engines need for it, as the first memory_region in its memory does.
    /// @throws weftio::error errc::invalid_argument the device is no GPU of CUDA, was added before, or the budget is
    ///         below 64 KiB; errc::out_of_memory; with gpu_staleness::seen_frees errc::not_supported the driver's
    ///         functions cannot be seen (the processor, code that is not known, or no free addresses near it),
    ///         errc::permission_denied the system lets no code change, errc::in_use another library changes it
    void add_memory_of(const device& gpu, std::size_t budget_bytes = 0);

    /// Returns keys of `bytes` bytes at `address`. Registers the pages unless they are registered, and makes a remote
    /// key if `rights` include more than access::local_write, unless another handle has that key. Blocks for other
    /// threads that register, and, if it evicts, as the destructor of memory_region.
    /// @throws weftio::error errc::invalid_argument `bytes` is 0, the range wraps, `address` is null, or `rights`
    ///         include remote_write or remote_atomic without local_write; errc::not_reachable the process cannot read
    ///         all of the bytes, or `rights` have local_write and not all can be written; errc::out_of_memory the pages
    ///         are more than the budget, or so with those that handles hold, or all keys are in use;
    ///         errc::not_supported, errc::in_use userfaultfd cannot watch the pages; errc::closed the process exits. Of
    ///         GPUs: errc::invalid_argument the bytes exceed the allocation; errc::not_supported it is managed memory,
    ///         of a pool (cudaMallocAsync()), or has no ID; errc::not_reachable it is memory of a GPU that was not
    ///         added; errc::device_error the driver fails. On error nothing is registered; registrations may have been
    ///         evicted.
    [[nodiscard]] registration get(const void* address, std::size_t bytes, access rights = access::local_write);
    /// Drops registrations and remote keys of pages of these bytes: no later get() returns them. Those that nobody
    /// holds are given back before it returns, which blocks as the destructor of memory_region; the others are given
    /// back with their last handle. Does nothing if there are none.
    void invalidate(const void* address, std::size_t bytes);
    /// As invalidate(), and withdraws remote keys of these bytes that handles have. When it returns, NICs refuse these
    /// keys and access no byte by them; requests of peers that are under way fail with a remote access error. Blocks
    /// for up to one iteration of each engine. Local keys stay valid until their last handle. Keys to which memory
    /// windows are bound stay, and the log tells so: free the windows first.
    ///
    /// Of a GPU, local keys of these allocations are withdrawn, too: entries that name them fail. It does not wait for
    /// copies that copy engines have begun, so it may be called where GPU memory is freed: drained() tells them.
    /// @return how many keys it has withdrawn
    std::size_t revoke(const void* address, std::size_t bytes);
    /// Whether copy engines have ended all copies to and from these bytes of a GPU that they had begun by keys that do
    /// not exist any more. True for memory of the host, for which the end of a key waits. Never blocks.
    bool drained(const void* address, std::size_t bytes) const noexcept;
    /// Never blocks. Values are exact once the calls have returned.
    registration_cache_counters counters() const noexcept;

 private:
    friend detail::internals;
    template <class Nic>
    void register_with_any(const Nic& nic);

    registrations::cache* cache_;                     ///< of the host's memory; handles may keep it longer
    std::unique_ptr<registrations::gpu_caches> gpus_; ///< nullptr: none was added
};

} // namespace weftio
