// The text for an OpenCL compiler: the device library, then the kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weftio::devices::opencl {

/// A header's text when the library was built.
struct embedded_header {
    std::string_view file; ///< the name by which a kernel includes it
    std::string_view text;
};

/// All headers of the device library for OpenCL C, each after those that it needs.
const std::vector<embedded_header>& device_headers();

/// Builds the whole translation unit. Includes of the library are dropped, so the compiler opens no files; every file
/// keeps its own name and line numbers in the compiler's messages. `file` names the kernel's header there; `before` is
/// inserted between the library and the kernel.
std::string translation_unit(std::string_view kernel, std::string_view file, std::string_view before = {});

} // namespace weftio::devices::opencl
