// The command line of weftio-run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weftio::run {

/// Exit statuses of weftio-run itself; all others are the program's. Those of env(1), nohup(1), timeout(1).
inline constexpr int own_failure = 125, not_executable = 126, no_program = 127;

/// What the user asked for. Empty options are not given.
struct command {
    enum class action { start, say, show } what = action::say;
    std::string text{}; ///< say: the text to print
    int exit_code = 0;  ///< say: the exit status
    std::string wire{}, port{}, address{}, devices{}, loss{}, stale{};
    std::string dump{};                 ///< absolute
    std::string process{};              ///< show: the id of the process
    std::vector<std::string> program{}; ///< its name and its arguments
};

/// Parses the command line. Never prints and never ends the program: help and errors are returned as `say`.
command parse_command_line(int argc, const char* const* argv);

/// The help text, which fits a screen.
std::string_view help_text() noexcept;

} // namespace weftio::run
