// Other programs that the benchmark needs.
#pragma once

#include <string>
#include <vector>

namespace weftio::bench {

/// Runs a program found on the PATH, without its output, to its end. Returns its exit status, 127 when there is no such
/// program, 128 + the signal that ended it.
int run_command(const std::vector<std::string>& words);

} // namespace weftio::bench
