// weftio-run: starts a program that sees RDMA devices which Weftio stands in for.
//
//   weftio-run ibv_devinfo
//   weftio-run --wire lab -- ib_write_bw -d mlx5_0
//   weftio-run --show 4711
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <vector>

#include "environment.hpp"
#include "options.hpp"
#include "output.hpp"
#include "program.hpp"
#include "show.hpp"

namespace {

using namespace weftio::run;

int say(const command& wanted)
{
    if (wanted.exit_code == 0)
        return weftio::apps::no_complaint(weftio::apps::print_out(wanted.text)) ? 0 : own_failure;
    std::fputs(wanted.text.c_str(), stderr);
    return wanted.exit_code;
}

/// Becomes the program: its process is this one. Returns when that failed.
int start(const command& wanted)
{
    check_environment(wanted);
    const std::filesystem::path own_folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const char* const path = std::getenv("PATH");
    const std::string program =
        find_program(wanted.program[0], path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
    check_program(program);
    set_environment(wanted, find_library(own_folder));
    std::vector<char*> arguments;
    for (const std::string& argument : wanted.program)
        arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execv(program.c_str(), arguments.data());
    if (errno == ENOEXEC) { // a script without a first line that names its interpreter, as shells start it
        arguments[0] = const_cast<char*>(program.c_str());
        arguments.insert(arguments.begin(), const_cast<char*>("sh"));
        ::execv("/bin/sh", arguments.data());
    }
    throw refusal(not_executable, program + ": cannot be started: " + std::strerror(errno));
}

} // namespace

int main(int argc, char** argv)
try {
    const command wanted = parse_command_line(argc, argv);
    switch (wanted.what) {
        case command::action::say: return say(wanted);
        case command::action::show: return say({.text = look_at(wanted.process)});
        case command::action::start: break;
    }
    return start(wanted);
} catch (const refusal& refused) {
    std::fprintf(stderr, "weftio-run: %s\n", refused.what());
    return refused.exit_code;
} catch (const std::exception& error) { // of the standard library: no memory, no /proc
    std::fprintf(stderr, "weftio-run: %s\n", error.what());
    return own_failure;
}
