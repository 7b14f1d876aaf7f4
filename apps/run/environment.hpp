// What a program is started with.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "options.hpp"

namespace weftio::run {

/// The library to preload: in the build tree or as it is installed, as seen from the folder of weftio-run. Throws
/// `refusal` when it is not there, or its path cannot be preloaded.
std::string find_library(const std::filesystem::path& own_folder);

/// The value of LD_PRELOAD with a library in front of those that are there.
std::string preload_with(const std::string& library, std::string_view there);

/// Looks at the variables that stand for options which are not given. Throws `refusal` when one says what its option
/// may not.
void check_environment(const command& wanted);

/// Sets the variables that the libraries read. What is not given is left as it is.
void set_environment(const command& wanted, const std::string& library);

} // namespace weftio::run
