// Text on its way out of the program, with the reason where it does not get there.
#pragma once

#include <string>
#include <string_view>

namespace weftio::replay {

/// Prints a line to standard error. Where that fails nobody can be told.
void say(std::string_view line) noexcept;
/// Writes `text` to standard output, and flushes. Returns an error for the user, empty when there was none.
std::string print_out(std::string_view text);
/// Writes a file; `-` is standard output. Returns an error for the user, empty when there was none.
std::string write_file(const std::string& path, std::string_view text);
/// Whether write_file() could open `path`: the error for the user, empty when it could. Asked before hours of sending.
std::string try_file(const std::string& path);

} // namespace weftio::replay
