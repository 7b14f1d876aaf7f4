// Defines a kernel in each form that devices need, from one source.
#pragma once

#include <string_view>

#include "weftio/device.hpp"
#include "weftio/embedded.hpp"

/// Defines `NAME_kernel`, a weftio::kernel for the function NAME of header FILE, which the translation unit must also
/// include.
///
/// The build adds FILE to the program: weftio_add_kernels() of CMake, weftio-embed of Meson and Makefiles
/// (docs/guide.md, "Your own project"). Otherwise the linker reports `NAME_needs_weftio_add_kernels` as undefined.
/// Nothing is searched at run time. Use the macro once for each function in a translation unit, at namespace scope of a
/// source file; several translation units may define the same kernel. Kernels of one program have different names.
#define WEFTIO_DEFINE_KERNEL(NAME, FILE)                                                                               \
    static_assert(WEFTIO_DEV_HAS_CHECKS || !WEFTIO_ASKS_FOR_CHECKS(WEFTIO_DEV_CHECKS),                                 \
                  "include " FILE ", which defines WEFTIO_DEV_CHECKS, before other headers of Weftio");                \
    WEFTIO_DECLARE_EMBEDDED(NAME);                                                                                     \
    [[maybe_unused]] static const weftio::kernel NAME##_kernel =                                                       \
        weftio::detail::make_kernel(#NAME, &NAME, WEFTIO_EMBEDDED_NAME(NAME), FILE)

/// Whether WEFTIO_DEV_CHECKS, the argument, is defined as a macro: then its expansion differs from its name.
#define WEFTIO_ASKS_FOR_CHECKS(CHECKS) (!weftio::detail::is_same_text(WEFTIO_TEXT_OF(CHECKS), "WEFTIO_DEV_CHECKS"))
#define WEFTIO_TEXT_OF(EXPANDED) #EXPANDED

namespace weftio::detail {

constexpr bool is_same_text(std::string_view a, std::string_view b)
{
    return a == b;
}

/// Registers a fatbin of the program. A CUDA device loads all of them when it is opened, because loading would wait for
/// running kernels.
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
