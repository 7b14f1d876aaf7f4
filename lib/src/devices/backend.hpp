// The interface of a kind of device. device.cpp builds the public classes on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/process.hpp"
#include "weftio/memory_kind.hpp"

struct weftio_dev_clock;

namespace weftio::devices {

struct launch_request;
class unfinished_copies;

/// A launched kernel. The destructor does not wait, since running_kernel has waited before. A kernel that still runs
/// then is left behind: the back end must keep alive, and never free, whatever the kernel may use.
class running_backend {
 public:
    virtual ~running_backend() = default;
    /// Waits up to `bound` for the kernel's end, and returns whether it has ended; throws weftio::error, at every call,
    /// if it ended with a fault. `bound` may be 0 (check and return) or as large as its type allows; it is not
    /// negative.
    virtual bool wait_for(std::chrono::nanoseconds bound) = 0;
    /// Whether the kernel may start long after its launch, because it is compiled first.
    virtual bool starts_late() const noexcept { return false; }
    bool may_end() const noexcept { return maker_.may_end(); }

 private:
    const core::maker maker_{};
};

/// Copies to and from a device's memory, in order, while kernels run. One thread at a time. The destructor waits for
/// copies in flight.
class copy_queue {
 public:
    /// Rows of `bytes` bytes each, `from_stride` apart in the source and `to_stride` in the destination.
    struct rows {
        std::size_t bytes, count, to_stride, from_stride;
    };

    virtual ~copy_queue() = default;
    /// Starts a copy between memory of this device, of another one of its kind, or of the host, and returns. The caller
    /// keeps `from` unchanged until a later mark() is complete. A failed device copies nothing.
    virtual void copy(void* to, const void* from, const rows& rows) noexcept = 0;
    enum class direction : std::uint8_t { to_device, to_host };
    /// As copy() of one row between host memory and memory of this device that its owner may have freed.
    /// @return false: the driver knows no such memory, or the device has failed; nothing is copied, and other copies go
    ///   on
    virtual bool try_copy(void* to, const void* from, std::size_t bytes, direction which) noexcept
    {
        (void)which;
        copy(to, from, {.bytes = bytes, .count = 1, .to_stride = bytes, .from_stride = bytes});
        return !failed();
    }
    /// Starts to write the four bytes of `pattern`, as they lie in memory, again and again, and returns.
    virtual void fill(void* to, std::uint32_t pattern, std::size_t bytes) noexcept = 0;
    /// Ends batch `number`, which holds all copies started since the last mark; numbers count up from 1.
    virtual void mark(std::uint32_t number) noexcept = 0;
    /// The last batch whose copies are visible to kernels; 0 if none is. Any thread.
    virtual std::uint32_t completed() const noexcept = 0;
    /// Whether the device has failed: incomplete copies never complete. Any thread.
    virtual bool failed() const noexcept = 0;
};

/// @param who  what the memory is for, for the error text
/// @throws weftio::error errc::invalid_argument `kind` is none of the three
void require_kind(std::string_view who, memory_kind kind);

class device_backend {
 public:
    struct allocation {
        void* cpu = nullptr;
        void* device = nullptr;
        std::span<const std::byte> arena{}; ///< the whole pages of the device around it; empty if unknown
        bool writable = true;               ///< false: adopted, and read-only
    };

    virtual ~device_backend() = default;
    virtual const std::string& name() const noexcept = 0;
    /// N of "cuda:N"; -1: no GPU of CUDA.
    virtual int cuda_number() const noexcept { return -1; }
    /// Whether kernels of this device may use memory of `other`.
    virtual bool shares_memory_with(const device_backend& other) const noexcept { return this == &other; }
    /// Has kernels of this device access memory of `other` that is of kind `kind`. Throws weftio::error
    /// errc::not_reachable if they cannot; `who` begins its text.
    virtual void reach(const device_backend& other, memory_kind kind, std::string_view who);
    /// Allocates zeroed memory; throws weftio::error. The caller has checked `bytes` > 0 and `alignment`.
    virtual allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind kind) = 0;
    virtual void release(const allocation& allocation, memory_kind kind) noexcept = 0;
    /// Finds out what kind of memory `address` is; throws weftio::error as device::adopt does. `address` must be
    /// non-null and `bytes` > 0.
    virtual std::pair<allocation, memory_kind> adopt(void* address, std::size_t bytes);
    /// Copies from the host into memory of any kind; blocks until the copy has finished.
    virtual void upload(const allocation& to, const void* from, std::size_t bytes);
    /// Whether download() may be asked for a word there.
    virtual bool can_read(const void* address) const noexcept;
    /// Copies from memory of any kind, at a device address, to the host; blocks until the copy has finished.
    virtual void download(void* to, const void* from, std::size_t bytes);
    /// Makes a copy queue. Throws weftio::error errc::not_supported if the CPU can write the device's memory itself.
    virtual std::shared_ptr<copy_queue> make_copy_queue(std::shared_ptr<device_backend> self);
    /// Exports device memory as a dma-buf; throws weftio::error errc::not_supported if the device has none.
    virtual int export_dma_buf(const allocation& of, std::size_t bytes);
    /// A number that tells an allocation from a later one at the same address; throws what export_dma_buf throws.
    virtual std::uint64_t buffer_id(const allocation& of);
    /// Starts the kernel and returns. `self` keeps this back end alive for as long as the kernel runs.
    virtual std::shared_ptr<running_backend> launch(const launch_request& request,
                                                    std::shared_ptr<device_backend> self) = 0;
    /// The clock that kernels read; nullptr if they have a timer of their own.
    virtual const weftio_dev_clock* clock() const noexcept = 0;
    /// Has libraries that this thread calls find the device: a GPU's context is current until leave_thread().
    virtual void enter_thread() noexcept {}
    virtual void leave_thread() noexcept {}
    bool may_end() const noexcept { return maker_.may_end(); }

 private:
    const core::maker maker_{};
};

/// The bytes of a `memory`. The destructor frees them unless they were adopted.
struct memory_block {
    explicit memory_block(std::shared_ptr<device_backend> device) : owner(std::move(device)) {}
    memory_block(const memory_block&) = delete;
    memory_block& operator=(const memory_block&) = delete;
    ~memory_block()
    {
        if (at.device && !adopted && owner->may_end())
            owner->release(at, kind);
    }
    const std::byte* begin() const noexcept { return static_cast<const std::byte*>(at.cpu); }
    /// The pages to map for a NIC: the whole arena if there is one, so that its blocks share one mapping.
    std::span<const std::byte> pages() const noexcept
    {
        return at.arena.empty() ? std::span(begin(), bytes) : at.arena;
    }

    std::shared_ptr<device_backend> owner;
    device_backend::allocation at;
    std::size_t bytes = 0;
    memory_kind kind = memory_kind::cpu_device;
    bool adopted = false;
    /// Set: who withdraws a key of the memory does not wait for copy engines, but adds here what they have begun.
    std::shared_ptr<unfinished_copies> unfinished{};
};

std::shared_ptr<device_backend> open_cpu();
/// Opens OpenCL device `index`, or the first usable one if `index` < 0. Throws weftio::error, with the reason for each
/// refused device, if there is none.
std::shared_ptr<device_backend> open_opencl(int index);
/// Opens CUDA device `index`, or the one with PCI address `spec` if `index` < 0. Throws weftio::error if there is no
/// driver or no such GPU.
std::shared_ptr<device_backend> open_cuda(std::string_view spec, int index);

} // namespace weftio::devices
