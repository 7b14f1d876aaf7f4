// Ranges of memory that devices may access.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "dev.hpp"
#include "doca_mmap.h"
#include "gpu.hpp"
#include "weftio/memory.hpp"
#include "weftio/rdma.hpp"

namespace weftio::doca {

/// @throws failure DOCA_ERROR_INVALID_VALUE `flags` has others than DOCA_ACCESS_FLAG_*
void require_access_flags(std::uint32_t flags);
access rights_of(std::uint32_t flags);

} // namespace weftio::doca

struct doca_mmap {
    static constexpr const char* noun = "mmap";

    doca_mmap() = default;
    /// A peer's memory.
    explicit doca_mmap(const weftio::remote_region& memory) : remote(memory) {}

    std::optional<weftio::remote_region> remote{}; ///< of a peer's memory; then there is nothing else

    void start();
    void stop();
    void end(); ///< the program has destroyed it, in any state
    void add(std::shared_ptr<doca_dev> device);
    void remove(const doca_dev* device);
    void set_permissions(std::uint32_t flags);
    void set_range(void* address, std::size_t bytes);
    /// @return the bytes, which live as long as the mmap
    const std::vector<std::uint8_t>& exported(const doca_dev& device);

    /// What stays of the range for those who use it. @throws failure DOCA_ERROR_BAD_STATE not started
    struct registered {
        weftio::memory_region region;
        std::uint8_t* device_address = nullptr; ///< of the first byte of the range
        std::uint8_t* cpu_address = nullptr;    ///< nullptr if the CPU does not see it
        std::size_t offset = 0;                 ///< of the range in the region
        std::size_t bytes = 0;
        std::shared_ptr<const weftio::memory> memory{};
    };
    std::shared_ptr<registered> range();

 private:
    void require_stopped() const;
    void unregister();
    weftio::doca::memory_part part() const;

    std::mutex mutex_;
    std::vector<std::shared_ptr<doca_dev>> devices_;
    std::uint32_t flags_ = DOCA_ACCESS_FLAG_LOCAL_READ_WRITE;
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
    std::shared_ptr<registered> registered_;
    std::vector<std::uint8_t> exported_;
};
