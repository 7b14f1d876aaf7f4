// The source tree of this build.
#pragma once

#include <filesystem>

namespace weftio::test {

/// The root of the source tree. Not derived from __FILE__, which is relative so that clones can share a compiler cache.
std::filesystem::path source_folder();

} // namespace weftio::test
