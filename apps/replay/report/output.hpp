// Writes text to standard output, standard error and files, and reports failures.
#pragma once

#include <string>
#include <string_view>

namespace weftio::replay {

/// Prints a line to standard error. A failure cannot be reported.
void say(std::string_view line) noexcept;
/// Writes `text` to standard output and flushes. Returns an error for the user; empty on success.
std::string print_out(std::string_view text);
/// Writes a file (`-`: standard output). Returns an error for the user; empty on success.
std::string write_file(const std::string& path, std::string_view text);
/// Checks that write_file() can open `path`, before hours of sending. Returns an error for the user; empty on success.
std::string try_file(const std::string& path);

} // namespace weftio::replay
