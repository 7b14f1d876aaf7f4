// One machine instruction of x86-64, as far as it can be executed at another address.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weftio::hooks {

/// What an instruction does that stands before a jump, and is undone by the jump.
enum class effect : std::uint8_t {
    other,   ///< not known
    none,    ///< of nops, comparisons
    push,    ///< of a register
    reserve, ///< moves the stack pointer down
    set,     ///< changes a register
};

enum class branch : std::uint8_t { none, jump, condition, call };

struct instruction {
    std::size_t bytes = 0;    ///< 0: not known, or it cannot be executed elsewhere
    std::size_t distance = 0; ///< offset of the 4 bytes by which it names memory relative to its end; 0: it has none
    hooks::branch branch = branch::none;
    std::size_t branch_bytes = 0; ///< its last ones, 1 or 4, which say where a branch leads, relative to its end
    std::uint8_t condition = 0;   ///< of a branch
    bool is_last = false;         ///< the one behind it is not executed after it
    hooks::effect effect = effect::other;
    std::uint8_t changed = 0;  ///< number of the register that it pushes or sets
    std::int32_t reserved = 0; ///< bytes
};

/// Decodes what compilers put first in a function. Reads no byte behind the instruction.
instruction decode(const std::uint8_t* code) noexcept;

} // namespace weftio::hooks
