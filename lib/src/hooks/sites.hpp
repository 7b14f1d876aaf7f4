// Instructions of a function that a jump can take the place of.
#pragma once

#include <cstdint>
#include <vector>

#include "hooks/instruction.hpp"

namespace weftio::hooks {

struct site {
    std::uintptr_t at;
    std::size_t bytes; ///< of the instruction
    std::vector<std::uint8_t>
        undo; ///< code that undoes what the instructions before it did: as the function was called
};

/// The first instruction, and those behind it as long as the ones before can be undone and can be moved, and no branch
/// nearby leads to it.
std::vector<site> find_sites(std::uintptr_t function);

} // namespace weftio::hooks
