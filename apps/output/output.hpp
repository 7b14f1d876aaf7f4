// Writes text to standard output, standard error and files, and reports failures in sentences that begin with the
// program's name.
#pragma once

#include <string>
#include <string_view>

namespace weftio::apps {

/// Puts a file that takes nothing where standard input, output or error is closed. The next file to be opened would
/// become that otherwise, the capture to write for instance, and what is printed would go there.
void fill_standard_descriptors() noexcept;
/// Prints `error` to standard error unless it is empty. Returns whether it was empty.
bool no_complaint(std::string_view error) noexcept;
/// Prints a line to standard error. A failure cannot be reported.
void say(std::string_view line) noexcept;
/// The error for the user when standard output has taken no bytes, for this errno.
std::string output_failed(int error);
/// Writes `text` to standard output and flushes. Returns an error for the user; empty on success.
std::string print_out(std::string_view text);
/// Writes a file (`-`: standard output). Returns an error for the user; empty on success.
std::string write_file(const std::string& path, std::string_view text);
/// Checks that write_file() can open `path`, before hours of sending. Returns an error for the user; empty on success.
std::string try_file(const std::string& path);

} // namespace weftio::apps
