// Hears of frees of a GPU's memory, and ends what was made from it.
#pragma once

#include <memory>

#include "devices/cuda/free_watch.hpp"
#include "registrations/cache.hpp"
#include "registrations/gpu_memory.hpp"

namespace weftio::registrations {

class free_hearing final : public devices::cuda::free_listener {
 public:
    /// @param memory  of `registered`; both outlive the object
    /// @throws weftio::error as devices::cuda::free_watch::subscribe()
    free_hearing(const gpu_memory& memory, cache& registered)
        : memory_(memory), registered_(registered), heard_(devices::cuda::free_watch::instance().subscribe(*this))
    {}
    free_hearing(const free_hearing&) = delete;
    free_hearing& operator=(const free_hearing&) = delete;
    ~free_hearing() { devices::cuda::free_watch::instance().unsubscribe(heard_); }

    void freed(std::uintptr_t begin) noexcept override { registered_.freed(begin); }
    void unmapped(std::uintptr_t begin, std::size_t bytes) noexcept override
    {
        registered_.revoke({begin, begin + bytes});
    }
    void context_ended(devices::cuda::context which) noexcept override
    {
        registered_.context_ended(reinterpret_cast<std::uintptr_t>(which));
    }
    void primary_ended(devices::cuda::device_number of) noexcept override
    {
        if (const std::uintptr_t context = memory_.primary_of(of); context != 0)
            registered_.context_ended(context);
    }

 private:
    const gpu_memory& memory_;
    cache& registered_;
    const std::shared_ptr<devices::cuda::free_watch::subscription> heard_;
};

} // namespace weftio::registrations
