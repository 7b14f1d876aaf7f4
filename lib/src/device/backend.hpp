// What a kind of device must be able to do. device.cpp turns it into the public classes.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/process.hpp"
#include "weftio/device.hpp"

namespace weftio::detail {

/// A launched kernel, as its back end sees it. The destructor does not wait: running_kernel has waited before. A kernel
/// that still runs then is left behind: the back end must keep alive, and not free, whatever it may use.
class running_backend {
 public:
    virtual ~running_backend() = default;
    /// Whether the kernel has ended within `bound`; throws weftio::error, at every call, when it ended with a fault.
    /// `bound` may be 0 (look and return) or as large as its type allows; it is not negative.
    virtual bool wait_for(std::chrono::nanoseconds bound) = 0;
    /// Whether long may pass between launch and the kernel's first step: its compiler works meanwhile.
    virtual bool starts_late() const noexcept { return false; }
    bool may_end() const noexcept { return maker_.may_end(); }

 private:
    const maker maker_{};
};

/// Copies to memory of a device, in order, while kernels run. One thread at a time. The destructor waits for what is
/// under way.
class copy_queue {
 public:
    /// Rows side by side on both sides: `bytes` of each, `stride` from one to the next.
    struct rows {
        std::size_t bytes, count, stride;
    };

    virtual ~copy_queue() = default;
    /// Starts a copy and returns. `from` stays as it is until a later mark() has landed. A device that has failed
    /// copies nothing.
    virtual void copy(void* to, const void* from, const rows& rows) noexcept = 0;
    /// Says that everything started so far is batch `number`; numbers count up from 1.
    virtual void mark(std::uint32_t number) noexcept = 0;
    /// Number of the last batch that has landed: kernels see it all. 0: none has.
    virtual std::uint32_t landed() const noexcept = 0;
};

class device_backend {
 public:
    struct allocation {
        void* cpu = nullptr;
        void* device = nullptr;
        std::span<const std::byte>
            arena{}; ///< whole pages around it that are the device's own too; empty: none are known
    };

    virtual ~device_backend() = default;
    virtual const std::string& name() const noexcept = 0;
    /// Whether its kernels may use memory of `other`.
    virtual bool shares_memory_with(const device_backend& other) const noexcept { return this == &other; }
    /// Zeroed memory; throws weftio::error. `bytes` > 0 and `alignment` are checked by the caller.
    virtual allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind kind) = 0;
    virtual void release(const allocation& allocation, memory_kind kind) noexcept = 0;
    /// What memory of somebody else's is; throws weftio::error as device::adopt does. `address` and `bytes` are not 0.
    virtual std::pair<allocation, memory_kind> adopt(void* address, std::size_t bytes);
    /// Copies from the host into memory of any kind; blocks until it is there.
    virtual void upload(const allocation& to, const void* from, std::size_t bytes);
    /// Throws weftio::error errc::not_supported where the CPU writes the device's memory itself.
    virtual std::shared_ptr<copy_queue> make_copy_queue(std::shared_ptr<device_backend> self);
    /// A dma-buf of device memory; throws weftio::error errc::not_supported where there is none.
    virtual int export_dma_buf(const allocation& of, std::size_t bytes);
    /// What tells one allocation from a later one at the same address; throws as export_dma_buf.
    virtual std::uint64_t buffer_id(const allocation& of);
    /// Starts the kernel and returns. `self` keeps this back end alive for as long as the kernel runs.
    virtual std::shared_ptr<running_backend> launch(const launch_request& request,
                                                    std::shared_ptr<device_backend> self) = 0;
    /// nullptr where kernels have a timer.
    virtual const weftio_dev_clock* clock() const noexcept = 0;
    bool may_end() const noexcept { return maker_.may_end(); }

 private:
    const maker maker_{};
};

/// The bytes behind a `memory`. Its destructor gives them back, unless they are somebody else's.
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
    /// What a NIC is told of, so that blocks side by side cost it one mapping.
    std::span<const std::byte> pages() const noexcept
    {
        return at.arena.empty() ? std::span(begin(), bytes) : at.arena;
    }

    std::shared_ptr<device_backend> owner;
    device_backend::allocation at;
    std::size_t bytes = 0;
    memory_kind kind = memory_kind::cpu_device;
    bool adopted = false;
};

std::shared_ptr<device_backend> open_cpu();
/// `index` < 0: the first usable one. Throws weftio::error when there is none, saying why each was refused.
std::shared_ptr<device_backend> open_opencl(int index);
/// `index` < 0: `spec` is a PCI address. Throws weftio::error when there is no driver or no such GPU.
std::shared_ptr<device_backend> open_cuda(std::string_view spec, int index);

} // namespace weftio::detail
