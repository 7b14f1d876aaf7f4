// What kind of memory an address is: registered buffers of one engine, and what the CUDA driver knows.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <utility>

#include "storage/place.hpp"

namespace weftio::devices::cuda {
struct driver;
}

namespace weftio::storage {

/// Any thread.
class memories {
 public:
    /// Enters the bytes of `at`. @return false: some of them are registered
    bool enter(const place& at, std::size_t bytes);
    void leave(const place& at) noexcept;

    /// Says where `address` lies, and up to where its bytes reach. Without a CUDA driver in the process all that is not
    /// registered is the host's.
    place find(std::byte* address) const;
    /// The first byte of the registered memory that has `address`; nullptr: none has.
    std::byte* base_of(const std::byte* address) const;
    /// place::registered of the registered memory that has `address`; 0: none has it.
    std::uint64_t registered_at(const std::byte* address) const noexcept;

 private:
    struct registered {
        std::size_t bytes = 0;
        place at{};
    };

    /// Under the mutex. nullptr: none has the address.
    const std::pair<const std::uintptr_t, registered>* holder(std::uintptr_t address) const noexcept;

    mutable std::shared_mutex mutex_;
    std::map<std::uintptr_t, registered> registered_; ///< by its first byte
    std::atomic<std::size_t> count_{0};
};

/// Looks whether the process has loaded the CUDA driver meanwhile; it is never loaded from here. Returns whether this
/// call has found it. Any thread.
bool find_cuda_driver() noexcept;

/// The driver that find_cuda_driver() has found; nullptr: none yet.
const devices::cuda::driver* cuda_driver() noexcept;

/// Where an address lies, as the CUDA driver has it; the host's where there is no driver, or where it does not know it.
place find_by_cuda(std::byte* address);

} // namespace weftio::storage
