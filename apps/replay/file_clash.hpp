// Files that one command line names twice, so that a run would destroy what it reads, or one result the other.
#pragma once

#include <string>

#include "options.hpp"

namespace weftio::replay {

/// Looks for a file that `wanted` writes and also reads, or writes twice, under whatever path: also through links,
/// standard input and standard output. Pipes and devices may be named twice. Opens nothing.
///
/// Returns an error for the user, empty when there is no such file.
std::string file_clash(const command& wanted);

} // namespace weftio::replay
