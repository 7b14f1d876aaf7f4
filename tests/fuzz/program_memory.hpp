// Memory that commands of a fuzzer's program name.
#pragma once

#include <sys/mman.h>

#include <cstddef>

#include "expect.hpp"

namespace weftio::fuzz {

inline constexpr std::size_t arena_bytes = 1u << 20, hole_bytes = 1u << 20;

/// Memory of the program's, with a hole behind it.
inline std::byte* arena()
{
    static auto* const made = [] {
        void* const at =
            mmap(nullptr, arena_bytes + hole_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(at != MAP_FAILED && mprotect(static_cast<std::byte*>(at) + arena_bytes, hole_bytes, PROT_NONE) == 0,
               "memory");
        return static_cast<std::byte*>(at);
    }();
    return made;
}

} // namespace weftio::fuzz
