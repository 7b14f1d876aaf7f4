// Where the sources lie that this build is of.
#pragma once

#include <filesystem>

namespace weftio::test {

/// The root of the source tree. Not from __FILE__, which is relative to it: a compiler cache serves every clone.
std::filesystem::path source_folder();

} // namespace weftio::test
