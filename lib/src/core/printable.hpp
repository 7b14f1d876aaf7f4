// Words of others in sentences of ours.
#pragma once

#include <string>
#include <string_view>

namespace weftio::core {

/// Writes control characters of `text` as \n, \t, \x1b, ...: a name cannot break a line of a log or steer a terminal.
/// @param kept  characters that stay as they are
std::string printable(std::string_view text, std::string_view kept = {});

} // namespace weftio::core
