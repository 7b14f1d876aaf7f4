// The form in which weftio-embed passes a kernel header to WEFTIO_DEFINE_KERNEL. Not for use in programs.
#pragma once

#include <cstddef>

namespace weftio::detail {

/// A kernel for devices other than the CPU. Lives as long as the program.
struct embedded_kernel {
    const char* text; ///< text of the header, with the program's own headers inserted; ends with 0
    std::size_t text_bytes;
    const void* cuda_image;       ///< fatbin
    std::size_t cuda_image_bytes; ///< 0: the build had no nvcc
};

} // namespace weftio::detail

/// The symbol of kernel NAME. The linker reports it as undefined if the build does not add the kernel.
#define WEFTIO_EMBEDDED_NAME(NAME) NAME##_needs_weftio_add_kernels

#define WEFTIO_DECLARE_EMBEDDED(NAME)                                                                                  \
    extern "C" __attribute__((visibility("hidden"))) const weftio::detail::embedded_kernel WEFTIO_EMBEDDED_NAME(NAME)

#define WEFTIO_EMBEDDED(NAME, TEXT, IMAGE, IMAGE_BYTES)                                                                \
    WEFTIO_DECLARE_EMBEDDED(NAME);                                                                                     \
    const weftio::detail::embedded_kernel WEFTIO_EMBEDDED_NAME(NAME) = {TEXT, sizeof(TEXT) - 1, IMAGE, IMAGE_BYTES}
