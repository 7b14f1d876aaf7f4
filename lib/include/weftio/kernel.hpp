// One kernel source, in every form a device may want.
#pragma once

#include <string_view>

#include "weftio/device.hpp"
#include "weftio/embedded.hpp"

/// Defines `NAME_kernel`, a weftio::kernel for the function NAME of header FILE, which the translation unit must also
/// include.
///
/// The build adds FILE to the program: weftio_add_kernels() of CMake, weftio-embed of Meson and Makefiles
/// (docs/guide.md, "Your own project"). Without, the linker says that `NAME_needs_weftio_add_kernels` is undefined.
/// Nothing is looked for at run time. Use it once a function and translation unit, at namespace scope of a source file;
/// several may define the same kernel. Kernels of one program have different names.
#define WEFTIO_DEFINE_KERNEL(NAME, FILE)                                                                               \
    WEFTIO_DECLARE_EMBEDDED(NAME);                                                                                     \
    [[maybe_unused]] static const weftio::kernel NAME##_kernel =                                                       \
        weftio::detail::make_kernel(#NAME, &NAME, WEFTIO_EMBEDDED_NAME(NAME), FILE)

namespace weftio::detail {

/// Notes a fatbin of the program: CUDA devices load all of them when they are opened, before a kernel could be in the
/// way.
void register_cuda_image(std::string_view image);

template <class... Parameters>
kernel<Parameters...> make_kernel(const char* name, void (*function)(Parameters...), const embedded_kernel& embedded,
                                  const char* file)
{
    std::string_view image(static_cast<const char*>(embedded.cuda_image), embedded.cuda_image_bytes);
    register_cuda_image(image);
    return {name, function, {embedded.text, embedded.text_bytes}, image, file};
}

} // namespace weftio::detail
