// Where the memory side of an operation lies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "devices/backend.hpp"
#include "weftio/file_result.hpp"

namespace weftio::storage {

/// Memory for a file. Exactly one of `cpu` and `device` is set, unless the memory is absent.
struct place {
    std::byte* cpu = nullptr;    ///< the first byte, if the CPU sees it
    std::byte* device = nullptr; ///< the first byte, as the copy engine of the block's device has it
    std::size_t bytes = 0;       ///< from the first one on; ~0: the caller knows
    std::shared_ptr<const devices::memory_block> block{}; ///< keeps the bytes; none: they are the caller's
    std::shared_ptr<devices::device_backend> owner{};     ///< whose copy engine reaches `device`
    file_fall fall = file_fall::none;                     ///< why the memory is not the best
    std::uint64_t registered = 0;                         ///< its name among what rings may register; 0: none

    devices::device_backend* owner_of_device() const noexcept { return device ? owner.get() : nullptr; }
};

inline place place_of(const std::shared_ptr<const devices::memory_block>& block)
{
    const auto& at = block->at;
    if (at.cpu)
        return {.cpu = static_cast<std::byte*>(at.cpu), .bytes = block->bytes, .block = block};
    return {.device = static_cast<std::byte*>(at.device), .bytes = block->bytes, .block = block, .owner = block->owner};
}

} // namespace weftio::storage
