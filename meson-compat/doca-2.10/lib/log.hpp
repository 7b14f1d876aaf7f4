// The library's own lines in the program's log.
#pragma once

#include <mutex>
#include <string_view>

#include "doca_error.h"

namespace weftio::doca {

/// A line "[FUNCTION] TEXT (NAME OF ERROR)" of the library (SDK level) at level error.
void log_failure(const char* function, doca_error_t error, std::string_view text);
/// Lines of the library that are no failure of a call.
void log_warning(std::string_view text);
void log_info(std::string_view text);

/// Guards the backends. Taken after objects_mutex(), where both are.
std::mutex& log_mutex();

} // namespace weftio::doca
