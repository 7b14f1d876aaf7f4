// Where kernels run, and the memory they share with the host.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weftio/detail/internals.hpp"
#include "weftio/device/clock.h"
#include "weftio/device/queue/control.h"
#include "weftio/memory_kind.hpp"

namespace weftio {

namespace devices {
class running_backend;
class watchdog;
struct launch_request;
} // namespace devices

/// A block of memory that a device can use.
///
/// - Ownership: move-only; keeps its device alive. The destructor frees the bytes, unless they were adopted. Bytes that
///   a memory_region names stay until the region ends; bytes with frames that a driver is still sending stay until the
///   driver has given them back. Kernels must not use the memory afterwards.
/// - Threads: any, one at a time.
class memory {
 public:
    memory() = default;
    memory(memory&& other) noexcept { *this = std::move(other); }
    memory& operator=(memory&& other) noexcept
    {
        block_ = std::move(other.block_);
        cpu_ = std::exchange(other.cpu_, nullptr);
        device_ = std::exchange(other.device_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
        kind_ = other.kind_;
        return *this;
    }
    ~memory() = default;

    /// Address for the CPU; nullptr if the kind is `memory_kind::device` and the CPU cannot access it.
    void* cpu_address() const noexcept { return cpu_; }
    /// Address for kernels.
    void* device_address() const noexcept { return device_; }
    std::size_t bytes() const noexcept { return bytes_; }
    memory_kind kind() const noexcept { return kind_; }
    explicit operator bool() const noexcept { return device_ != nullptr; }

    /// Copies `bytes` bytes from the host to the start of the memory, whatever its kind. Blocks until the copy has
    /// finished, but never for a running kernel.
    /// @throws weftio::error errc::invalid_argument `bytes` is larger than the memory
    void upload(const void* from, std::size_t bytes);
    /// Copies `bytes` bytes from the start of the memory to the host, whatever its kind. Blocks until the copy has
    /// finished, but never for a running kernel.
    /// @throws weftio::error errc::invalid_argument the memory has fewer bytes
    void download(void* to, std::size_t bytes) const;
    /// Exports the memory as a dma-buf for a NIC's driver. Returns a file descriptor, which the caller closes.
    /// @throws weftio::error errc::not_supported the memory is not a GPU's own
    [[nodiscard]] int export_dma_buf() const;
    /// A number that no other allocation of the process ever has, for caches of registrations.
    /// @throws what export_dma_buf() throws
    std::uint64_t buffer_id() const;

 private:
    friend class device;
    friend detail::internals;
    explicit memory(std::shared_ptr<const devices::memory_block> block);

    std::shared_ptr<const devices::memory_block> block_;
    void* cpu_ = nullptr;
    void* device_ = nullptr;
    std::size_t bytes_ = 0;
    memory_kind kind_ = memory_kind::cpu_device;
};

/// Shape of a launch: `blocks` x `lanes`. CPU: a thread a block, its lanes are fibers. OpenCL: work-groups x
/// work-items.
struct grid {
    std::uint32_t blocks = 1;
    std::uint32_t lanes = 1;
};

/// A kernel in each form that devices need. Make one with WEFTIO_DEFINE_KERNEL (weftio/kernel.hpp).
template <class... Parameters>
struct kernel {
    const char* name;                ///< the function's name
    void (*function)(Parameters...); ///< compiled for the CPU
    std::string_view source;         ///< text of the header that defines it
    std::string_view cuda_image;     ///< fatbin; empty if the build had no nvcc
    const char* file = "";           ///< name of the header, for compiler messages
};

/// A host object with a device handle, which can be an argument of a kernel.
template <class T>
concept exported = requires(const T& object)
{
    object.handle();
};

/// A host object through which the kernel can be stopped too: a queue or a semaphore.
template <class T>
concept stoppable = exported<T> && requires(const T& object)
{
    {
        object.control()
        } -> std::convertible_to<weftio_dev_control*>;
};

/// What a kernel last did on one of its queues.
struct queue_trace {
    std::string queue;         ///< the queue and its state at the NIC
    std::uint32_t beats = 0;   ///< calls, and iterations of waits, so far
    std::uint32_t block = 0;   ///< block that used the queue last
    const char* function = ""; ///< "receive", "commit", ...; "none" if no kernel has used the queue
    std::uint32_t index = 0;
    std::int32_t status = 0; ///< enum weftio_dev_status
};

/// A watchdog's report on a kernel.
struct kernel_report {
    bool ended = false; ///< it returned or failed without having been asked to; false: it stopped making progress
    std::string text;   ///< one sentence on the kernel, and a line for each queue
    std::vector<queue_trace> queues;
};

struct watch_options {
    /// A kernel that leaves no beat for this long is reported. More than a year counts as a year.
    std::chrono::milliseconds period{500};
    /// OpenCL compiles a kernel at its launch, so `period` counts from the kernel's first beat there, and a kernel
    /// without a first beat is reported after `start`, or after `period` if that is longer. Other devices start a
    /// kernel at once.
    std::chrono::milliseconds start{60'000};
    /// Called once, on the watchdog's thread, after the queues have been stopped. It must not use the running_kernel.
    std::function<void(const kernel_report&)> on_report{};
};

/// A launched kernel.
///
/// - Ownership: move-only. The destructor stops the kernel and waits up to 5 s for it; a kernel that still runs then is
///   logged and left behind, together with the memory that its device shares. The destructor logs a fault that
///   wait_for() has not thrown.
/// - Threads: any, one at a time.
class running_kernel {
 public:
    running_kernel() = default;
    running_kernel(running_kernel&&) noexcept = default;
    /// Ends the kernel held so far like the destructor.
    running_kernel& operator=(running_kernel&& other) noexcept;
    ~running_kernel();

    /// Raises the abort flag of every queue that the kernel was given. The flag stays up until the next launch with
    /// that queue: waits on the queue return WEFTIO_DEV_ABORTED, also in other kernels that share it. Does nothing once
    /// the kernel has ended, so its queues may be destroyed by then. Never blocks.
    void stop() noexcept;
    /// Waits up to `bound` until every block of the kernel has ended; a `bound` of 0 or less checks without waiting.
    /// Returns whether the kernel has ended.
    /// @throws weftio::error errc::device_error the kernel ended with a fault; each call says so
    bool wait_for(std::chrono::nanoseconds bound);
    /// Whether the kernel still runs; a fault ends it. Never blocks.
    bool alive() const noexcept;

    /// Watches the kernel from a thread of its own until it ends. Receiving, committing, pushing and each iteration of
    /// a wait leave a beat, as does 1 in 64 waits for a semaphore's item that is there already. Other device functions
    /// leave none: a kernel that works on one burst for longer than a period, or only polls for completions, seems to
    /// hang.
    ///
    /// A kernel whose queues get no beat for a period is detected within two periods (see watch_options::start for the
    /// first beat): the watchdog raises the abort flags, makes the NIC stop using its queues (posted = completed +
    /// flushed), and reports which block last did what on which queue. It also reports a kernel that returns without
    /// having been asked to end. reset() makes the queues usable again.
    /// @throws weftio::error errc::invalid_argument a period below 1 ms, or no queue that could leave beats
    void watch(watch_options options);
    /// The state of the kernel's queues, a line for each, at any time, also while the kernel hangs. Blocks as long as a
    /// turn of the queues' engines.
    std::string dump() const;
    /// The same as a struct for each queue.
    std::vector<queue_trace> traces() const;

 private:
    friend class device;
    running_kernel(std::shared_ptr<devices::running_backend> backend, const devices::launch_request& request);
    void end() noexcept;

    std::string name_;
    std::shared_ptr<devices::running_backend> backend_;
    std::vector<weftio_dev_control*> controls_;
    std::vector<std::shared_ptr<devices::lifeline>> lines_;
    std::uint64_t beats_at_launch_ = 0;
    std::shared_ptr<devices::watchdog> watchdog_;
    bool fault_thrown_ = false;
};

/// A device that runs kernels.
///
/// - Ownership: a cheap handle; copies name the same device, and everything made from it keeps it alive.
/// - Threads: any.
class device {
 public:
    /// Opens `cpu`, `opencl` (the first usable OpenCL device), `opencl:N`, `cuda:N` or a GPU's PCI address.
    /// @throws weftio::error errc::invalid_argument a spec of no known form; errc::not_found no such device or no
    ///         driver; errc::not_supported the device lacks something needed, which the text names
    static device open(std::string_view spec);

    /// Allocates zeroed memory.
    /// @param alignment power of two, at most 2 MiB
    /// @throws weftio::error errc::not_supported the device has no memory of that kind; errc::out_of_memory;
    ///         errc::invalid_argument zero bytes, a bad alignment, or a `kind` that is none
    [[nodiscard]] memory allocate(std::size_t bytes, memory_kind kind, std::size_t alignment = 4096) const;

    /// Makes memory of the caller usable like memory of the library, after finding out its kind: it can be registered
    /// with a NIC and given to kernels. The result does not free the memory, which must outlive it.
    ///
    /// If adopted memory is unmapped, or its file is truncated, too early, a copy by the CPU fails the queue that names
    /// it; part of the bytes may have been copied. A send entry fails with syndrome 0x04 (local protection error), a
    /// request of a peer with a remote access error, and a SEND into a receive in that memory with a remote operational
    /// error. An eth_rxq whose slots lie there stops. Not detected are accesses by kernels and by copy engines of GPUs,
    /// and rings and records (memory_place), which must stay. If other memory is mapped at the same address, it is used
    /// as the adopted memory. Frames in adopted memory are copied when they are sent, unless the NIC reads them by
    /// itself.
    ///
    /// The first call installs a handler of SIGSEGV and SIGBUS in the process. It passes every fault that is not caused
    /// by such a copy to the action that was set before, with the same information. If the program sets a handler
    /// later, that handler is called first, until adopt(), a new memory_region or an engine (every 100 ms) installs the
    /// library's handler in front of it again. Until then, a handler of the program should call the action that it has
    /// replaced. A thread that runs engines in inline mode must not block the two signals.
    ///
    /// CPU: any memory that can be read; for a region with access::local_write it must be writable too. CUDA: memory
    /// from cudaMalloc, cudaMallocHost or cudaHostRegister. OpenCL: none.
    /// @throws weftio::error errc::not_supported managed memory, whose pages move while a NIC writes them, or a device
    ///         that adopts no memory; errc::not_reachable the device cannot access all of it; errc::invalid_argument
    ///         `address` is null, or `bytes` is 0 or, on a GPU, more than the allocation has
    [[nodiscard]] memory adopt(void* address, std::size_t bytes) const;

    /// Starts `kernel` and does not wait for its end. Arguments are scalars, device pointers, or host objects with a
    /// device handle (`eth_rxq`, ...) on this device, which must outlive the kernel. The abort flags of those objects
    /// are cleared first: do not launch on a queue while a stopped kernel still holds it. A fault in one block raises
    /// the flags, so that the other blocks end.
    ///
    /// OpenCL compiles a kernel first, which may take seconds. On PoCL launch() returns when the kernel runs, or after
    /// 30 s if it does not. No other thread may call exit() meanwhile, because that destroys PoCL's compiler while it
    /// works.
    ///
    /// CPU: at most 1024 blocks of 1024 lanes, and 16384 lanes in all unless a block has 1 lane; a lane has 128 KiB of
    /// stack. A lane that spins without weftio_relax keeps the other lanes of its block from running.
    /// @throws weftio::error errc::invalid_argument the device cannot run the grid, or not all of its blocks at once; a
    ///         queue or semaphore is on another device; the first word of a device handle (a weftio_dev_eth_rxq*, ...)
    ///         is not that of weftio/device/handle.h: the handle is of another kind or version, or the address never
    ///         was a handle (a null handle is not checked); or the kernel's name is one of OpenCL C;
    ///         errc::device_error the kernel does not compile (with the compiler's message) or cannot start
    ///
    /// Does not compile with a parameter that is not trivially copyable (a reference is not), a host object that is a
    /// temporary, or an argument of another kind than its parameter. If the result is discarded, the kernel is stopped
    /// at once.
    template <class... Parameters, class... Arguments>
    [[nodiscard]] running_kernel launch(const kernel<Parameters...>& kernel, grid shape,
                                        Arguments&&... arguments) const;

    const std::string& name() const noexcept; ///< for messages: "cpu", "opencl: pthread-skylake-avx512"
    /// Device address of the clock for kernels without a timer of their own; nullptr if they have one.
    const weftio_dev_clock* clock() const noexcept;

 private:
    friend detail::internals;
    explicit device(std::shared_ptr<devices::device_backend> backend) : backend_(std::move(backend)) {}
    running_kernel launch_erased(const devices::launch_request& request) const;

    std::shared_ptr<devices::device_backend> backend_;
};

} // namespace weftio

#include "weftio/detail/launch.hpp" // device::launch()
