// The text that an OpenCL compiler is given: the device library, then the kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weftio::detail::opencl {

/// A header as it was when the library was built.
struct embedded_header {
    std::string_view file; ///< as a kernel includes it: "weftio/device/ring.h"
    std::string_view text;
};

/// Every header of the device library that OpenCL C sees, each behind those it needs.
const std::vector<embedded_header>& device_headers();

/// The whole translation unit. Includes of the library are dropped, so the compiler searches for nothing; every file
/// keeps its own name and line numbers in the compiler's messages. `file` is what to call the kernel's header; `before`
/// stands between the library and it.
std::string translation_unit(std::string_view kernel, std::string_view file, std::string_view before = {});

} // namespace weftio::detail::opencl
