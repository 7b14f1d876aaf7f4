// weftio-run --show: a look at a process that runs.
#pragma once

#include <string>

namespace weftio::run {

/// What the process says of its devices. Blocks until it has said all, for two seconds at most where it says nothing.
/// @param process  its number, as check_process() takes it
/// @throws refusal there is no such process, it is another user's, was not started by weftio-run, has not looked for a
///                 device yet, is stopped, or does not answer in time
std::string look_at(const std::string& process);

} // namespace weftio::run
