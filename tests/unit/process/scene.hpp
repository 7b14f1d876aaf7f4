// Whole programs, to see how they end: this program, run again, plays a scene and nothing else.
#pragma once

#include <functional>
#include <string>

namespace weftio::test {

/// One program. What its main() does, and what main() returns.
class scene {
 public:
    /// @param name  must outlive main(): a literal
    scene(const char* name, std::function<int()> play);
};

/// How a program ended, and what it printed.
struct ending {
    int exit_status = -1; ///< -1: it did not exit
    int signal = 0;       ///< that ended it; SIGALRM: it hung
    std::string printed;  ///< to its standard output and error

    std::string text() const;
};

/// Plays a scene in a process of its own, until that ends, at most for twice `patience`.
ending play(const std::string& name, const std::string& argument = "");
/// The second argument of play(), in the process that plays.
std::string scene_argument();
/// Plays it so often; the first ending that is not `exit_status` without a word fails the test. Returns whether none
/// did.
bool ends_well(const std::string& name, const std::string& argument, int exit_status, int times);

} // namespace weftio::test
