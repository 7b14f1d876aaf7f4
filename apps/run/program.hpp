// The program that weftio-run starts: where it is, and whether it would load what is preloaded.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace weftio::run {

/// Why a program is not started, and the exit status that says so.
class refusal : public std::runtime_error {
 public:
    refusal(int exit_code, const std::string& why) : std::runtime_error(why), exit_code(exit_code) {}
    const int exit_code;
};

/// The path of a program that is named as shells name it: with a slash it is a path, else it is in a folder of `path`,
/// the value of PATH. Throws `refusal` when there is none that may be executed.
std::string find_program(const std::string& name, std::string_view path);

/// Throws `refusal` when the program would run without the preloaded library: it is statically linked, of another
/// machine, or runs with rights that its caller does not have. Of a script, its interpreter is looked at.
void check_program(const std::string& path);

} // namespace weftio::run
