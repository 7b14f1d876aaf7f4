// Runs other programs that a benchmark needs.
#pragma once

#include <string>
#include <vector>

namespace weftio::bench {

/// Runs a program found on the PATH and waits for its end. Its output is discarded. Returns its exit status; 127 if
/// there is no such program; 128 + the number of the signal that ended it.
int run_command(const std::vector<std::string>& words);

} // namespace weftio::bench
