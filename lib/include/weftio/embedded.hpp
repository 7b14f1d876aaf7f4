// What weftio-embed makes of a kernel header, and WEFTIO_DEFINE_KERNEL takes. Nothing here is for programs.
#pragma once

#include <cstddef>

namespace weftio::detail {

/// A kernel as devices that are not the CPU want it. Lives as long as the program.
struct embedded_kernel {
    const char* text; ///< the header with headers of its own, ends with 0
    std::size_t text_bytes;
    const void* cuda_image;       ///< fatbin
    std::size_t cuda_image_bytes; ///< 0: there was no nvcc
};

} // namespace weftio::detail

/// The name under which kernel NAME is found. It is what the linker says when a kernel was forgotten.
#define WEFTIO_EMBEDDED_NAME(NAME) NAME##_needs_weftio_add_kernels

#define WEFTIO_DECLARE_EMBEDDED(NAME)                                                                                  \
    extern "C" __attribute__((visibility("hidden"))) const weftio::detail::embedded_kernel WEFTIO_EMBEDDED_NAME(NAME)

#define WEFTIO_EMBEDDED(NAME, TEXT, IMAGE, IMAGE_BYTES)                                                                \
    WEFTIO_DECLARE_EMBEDDED(NAME);                                                                                     \
    const weftio::detail::embedded_kernel WEFTIO_EMBEDDED_NAME(NAME) = {TEXT, sizeof(TEXT) - 1, IMAGE, IMAGE_BYTES}
