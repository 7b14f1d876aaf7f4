// One kernel source, in every form a device may want.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weftio/device.hpp"

/// Defines `NAME_kernel`, a weftio::kernel for the function NAME of header FILE, which the translation unit must also include.
///
/// The header's text goes into the program, so nothing is looked for at run time. Use it once a function and translation unit,
/// at namespace scope of a source file; several may define kernels of the same names.
#define WEFTIO_DEFINE_KERNEL(NAME, FILE)                                                                                       \
    WEFTIO_EMBED(NAME##_source, FILE);                                                                                         \
    extern "C" __attribute__((weak)) const char NAME##_cuda_image[];                                                           \
    extern "C" __attribute__((weak)) const char NAME##_cuda_image_end[];                                                       \
    [[maybe_unused]] static const weftio::kernel NAME##_kernel = weftio::detail::make_kernel(                                  \
        #NAME, &NAME, NAME##_source(), weftio::detail::text_between(NAME##_cuda_image, NAME##_cuda_image_end), FILE)

/// Defines `std::string_view NAME()`, the bytes of FILE, which live as long as the program.
///
/// The assembler reads the file (.incbin). It looks in the directory of the build and in those given by -I: GCC hands it
/// neither -isystem nor -iquote. The labels are local to the object file. Link-time optimization, which may move code away
/// from them, must be off for the translation unit.
#define WEFTIO_EMBED(NAME, FILE)                                                                                               \
    __asm__(".pushsection .rodata\n.balign 16\n" #NAME "_bytes:\n.incbin \"" FILE "\"\n" #NAME "_bytes_end:\n.byte 0\n"        \
            ".popsection\n");                                                                                                  \
    extern "C" __attribute__((visibility("hidden"))) const char NAME##_bytes[];                                                \
    extern "C" __attribute__((visibility("hidden"))) const char NAME##_bytes_end[];                                            \
    [[maybe_unused]] static std::string_view NAME()                                                                            \
    {                                                                                                                          \
        return weftio::detail::text_between(NAME##_bytes, NAME##_bytes_end);                                                   \
    }                                                                                                                          \
    static_assert(true, "wants a semicolon")

namespace weftio::detail {

/// What lies between two labels, nothing when they are absent. By way of integers, because the compiler holds that two objects
/// have no distance.
inline std::string_view text_between(const char* begin, const char* end)
{
    return {begin, static_cast<std::size_t>(reinterpret_cast<std::uintptr_t>(end) - reinterpret_cast<std::uintptr_t>(begin))};
}

/// Notes a fatbin of the program: CUDA devices load all of them when they are opened, before a kernel could be in the way.
void register_cuda_image(std::string_view image);

template <class... Parameters>
kernel<Parameters...> make_kernel(const char* name, void (*function)(Parameters...), std::string_view source,
                                  std::string_view cuda_image, const char* file)
{
    register_cuda_image(cuda_image);
    return {name, function, source, cuda_image, file};
}

} // namespace weftio::detail
