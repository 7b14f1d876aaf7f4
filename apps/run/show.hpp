// weftio-run --show: a look at a process that runs.
#pragma once

#include <string>

namespace weftio::run {

/// What the process says of its devices. Blocks until it has said all, two seconds at most where it says nothing.
/// @throws refusal there is no such process below weftio-run, or it has not looked for a device yet
std::string look_at(const std::string& process);

} // namespace weftio::run
