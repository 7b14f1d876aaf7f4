// `weftio-files --check`: what a machine and its mounts have.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "devices/cuda/bar1.hpp"
#include "report.hpp"

namespace weftio::files {

struct check_options {
    std::string root = "/";           ///< has proc, sys and run; another folder: a recorded machine
    std::string configuration{};      ///< file; empty: as the environment names it
    std::string topology{};           ///< file in the text form; empty: from /sys
    std::vector<std::string> paths{}; ///< files or folders; empty: all mounts with drives, and network mounts
    /// Says how a GPU's BAR1 is used, by its address; empty: NVML does, of this machine.
    std::function<std::optional<devices::cuda::bar1_use>(const std::string&)> bar1_use{};
};

/// Looks at everything. Blocks for files.
/// @throws weftio::error  a path that is not there, or a configuration or topology that is wrong
std::vector<section> check(const check_options& options);

} // namespace weftio::files
