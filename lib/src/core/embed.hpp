// Files that become part of the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Defines `std::string_view NAME()`, the bytes of FILE, which live as long as the program.
///
/// The assembler reads the file (.incbin). It looks in the directory of the build and in those given by -I: GCC hands
/// it neither -isystem nor -iquote. The labels are local to the object file. Link-time optimization would move code
/// away from them, so lib/CMakeLists.txt turns it off for the sources that do this.
#define WEFTIO_EMBED(NAME, FILE)                                                                                       \
    __asm__(".pushsection .rodata\n.balign 16\n" #NAME "_bytes:\n.incbin \"" FILE "\"\n" #NAME                         \
            "_bytes_end:\n.byte 0\n"                                                                                   \
            ".popsection\n");                                                                                          \
    extern "C" __attribute__((visibility("hidden"))) const char NAME##_bytes[];                                        \
    extern "C" __attribute__((visibility("hidden"))) const char NAME##_bytes_end[];                                    \
    [[maybe_unused]] static std::string_view NAME()                                                                    \
    {                                                                                                                  \
        return weftio::core::text_between(NAME##_bytes, NAME##_bytes_end);                                             \
    }                                                                                                                  \
    static_assert(true, "wants a semicolon")

namespace weftio::core {

/// The text between two labels. Computed on integers, because the compiler treats the difference of pointers into two
/// objects as undefined.
inline std::string_view text_between(const char* begin, const char* end)
{
    return {begin,
            static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(end) - reinterpret_cast<std::uintptr_t>(begin))};
}

} // namespace weftio::core
