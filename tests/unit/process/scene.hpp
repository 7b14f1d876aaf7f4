// Tests of how whole programs end: this program runs itself again in a process that executes one scene only.
#pragma once

#include <functional>
#include <string>

namespace weftio::test {

/// A scene: the main() of one program; its result is the exit status.
class scene {
 public:
    /// @param name  must outlive main(): a literal
    scene(const char* name, std::function<int()> play);
};

/// How a program ended, and what it printed.
struct ending {
    int exit_status = -1; ///< -1: it did not exit
    int signal = 0;       ///< signal that ended it; SIGALRM: it hung
    std::string printed;  ///< its standard output and error

    std::string text() const;
};

/// Runs a scene in a process of its own and waits for its end, at most twice `patience`.
ending play(const std::string& name, const std::string& argument = "");
/// The second argument of play(), in the process of the scene.
std::string scene_argument();
/// Plays it so often; the first ending that is not `exit_status` without a word fails the test. Returns whether none
/// did.
bool ends_well(const std::string& name, const std::string& argument, int exit_status, int times);

} // namespace weftio::test
