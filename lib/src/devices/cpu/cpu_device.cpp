// The CPU as a device: memory of every kind is host memory, a block is a thread.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/log.hpp"
#include "devices/backend.hpp"
#include "devices/cpu/arenas.hpp"
#include "devices/cpu/lane_order.hpp"
#include "devices/cpu/launch.hpp"
#include "devices/cpu/mappings.hpp"
#include "devices/cpu/stack_pool.hpp"
#include "weftio/error.hpp"

namespace weftio::devices {

namespace cpu {

namespace {

void check_shape(const launch_request& request)
{
    const grid shape = request.shape;

    if (shape.blocks > max_blocks || shape.lanes > max_lanes)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: kernel {}: the CPU runs at most {} blocks of {} lanes, not {} of {}; launch fewer",
                        request.name, max_blocks, max_lanes, shape.blocks, shape.lanes));
    if (shape.lanes > 1 && std::size_t{shape.blocks} * shape.lanes > stack_pool::limit)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: kernel {}: {} blocks of {} lanes need {} stacks, the CPU device has {}; "
                                "launch fewer blocks, or 1 lane a block, which needs no stack",
                                request.name, shape.blocks, shape.lanes, std::size_t{shape.blocks} * shape.lanes,
                                stack_pool::limit));
}

class cpu_device final : public device_backend {
 public:
    cpu_device() : shuffle_seed_(shuffle_seed())
    {
        if (shuffle_seed_)
            core::log(log_level::info,
                      fmt::format("weftio: CPU device: lanes run in shuffled order; WEFTIO_SHUFFLE_SEED={} repeats it",
                                  *shuffle_seed_));
    }
    ~cpu_device() override
    {
        for (void* memory : kept_)
            std::free(memory);
    }

    const std::string& name() const noexcept override { return name_; }
    bool shares_memory_with(const device_backend& other) const noexcept override
    {
        return dynamic_cast<const cpu_device*>(&other) != nullptr;
    }
    allocation allocate(std::size_t bytes, std::size_t alignment, memory_kind kind) override;
    void release(const allocation& allocation, memory_kind kind) noexcept override;
    std::pair<allocation, memory_kind> adopt(void* address, std::size_t bytes) override
    {
        return {{.cpu = address, .device = address, .writable = may_be_written(address, bytes)},
                memory_kind::cpu_device};
    }
    std::shared_ptr<running_backend> launch(const launch_request& request,
                                            std::shared_ptr<device_backend> self) override;
    const weftio_dev_clock* clock() const noexcept override { return nullptr; }

 private:
    void keep_memory_from_now_on();

    const std::string name_ = "cpu";
    const std::optional<std::uint64_t> shuffle_seed_;
    stack_pool stacks_;
    arenas arenas_;
    std::mutex mutex_;          ///< guards the members below
    bool keeps_memory_ = false; ///< a kernel was left behind and may still use any memory
    std::vector<void*> kept_;   ///< memory released since then, never freed
};

/// Memory that NICs read lies in arenas, which share no page with other memory.
device_backend::allocation cpu_device::allocate(std::size_t bytes, std::size_t alignment, memory_kind kind)
{
    constexpr std::size_t cache_line = 64;
    arenas::block made;
    void* memory = nullptr;

    if (bytes <= std::numeric_limits<std::ptrdiff_t>::max() / 2) {
        if (kind == memory_kind::cpu_device)
            memory = (made = arenas_.allocate(bytes, alignment)).address;
        else if (posix_memalign(&memory, std::max(alignment, cache_line), bytes) != 0)
            memory = nullptr;
    }
    if (!memory)
        throw error(errc::out_of_memory,
                    fmt::format("weftio: CPU device: cannot allocate {} bytes of memory of kind {}; allocate less",
                                bytes, to_string(kind)));
    std::memset(memory, 0, bytes);
    return {.cpu = kind == memory_kind::device ? nullptr : memory, .device = memory, .arena = made.arena};
}

void cpu_device::release(const allocation& allocation, memory_kind) noexcept
{
    std::scoped_lock lock(mutex_);
    if (!allocation.arena.empty()) {
        if (!keeps_memory_)
            arenas_.release(allocation.device); // otherwise a kernel left behind may use it until the process ends
    } else if (!keeps_memory_) {
        std::free(allocation.device);
    } else {
        try {
            kept_.push_back(allocation.device);
        } catch (const std::bad_alloc&) { // not recorded: the memory leaks
        }
    }
}

void cpu_device::keep_memory_from_now_on()
{
    std::scoped_lock lock(mutex_);
    keeps_memory_ = true;
}

std::shared_ptr<running_backend> cpu_device::launch(const launch_request& request, std::shared_ptr<device_backend> self)
{
    check_shape(request);
    auto state = std::make_shared<launch_state>(request, std::move(self), stacks_, shuffle_seed_);
    return std::make_shared<cpu_running>(std::move(state), request.shape.blocks, [this] { keep_memory_from_now_on(); });
}

} // namespace

} // namespace cpu

std::shared_ptr<device_backend> open_cpu()
{
    return core::make_shared_here<cpu::cpu_device>();
}

} // namespace weftio::devices
