// Where the memory side of an operation lies.
#pragma once

#include <cstddef>
#include <memory>

#include "devices/backend.hpp"

namespace weftio::storage {

/// Memory for a file. Exactly one of `cpu` and `device` is set, unless the memory is absent.
struct place {
    std::byte* cpu = nullptr;    ///< the first byte, if the CPU sees it
    std::byte* device = nullptr; ///< the first byte, as the copy engine of the block's device has it
    std::size_t bytes = 0;       ///< from the first one on; ~0: the caller knows
    std::shared_ptr<const devices::memory_block> block{}; ///< keeps the bytes; none: they are the caller's
};

} // namespace weftio::storage
