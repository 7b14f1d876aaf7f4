// Finds files that a command line names twice, so that a run would overwrite its input, or one result another.
#pragma once

#include <string>

#include "options.hpp"

namespace weftio::replay {

/// Looks for a file that `wanted` writes and also reads, or writes twice, under whatever path: also through links,
/// standard input and standard output. Pipes and devices may be named twice. Opens no file.
///
/// Returns an error for the user; empty if there is no such file.
std::string file_clash(const command& wanted);

} // namespace weftio::replay
