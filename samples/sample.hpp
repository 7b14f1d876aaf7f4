// What all samples do around their run(): arguments, Ctrl-C, errors in one line, exit statuses.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>

namespace sample {

/// 1 once the user wants an end: Ctrl-C or SIGTERM.
inline volatile std::sig_atomic_t interrupted = 0;

/// Puts a file that takes nothing where standard input, output or error is closed. The next file to be opened would
/// become that otherwise, a capture for instance, and what is printed would go there.
inline void fill_standard_descriptors()
{
    for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(descriptor, F_GETFD) < 0)
            (void)::open("/dev/full", O_WRONLY); // becomes the lowest that is free
}

/// Calls `run` once the arguments have been read. Returns what run() does; 1 for wrong arguments, 4 for what failed.
template <class Run>
int main_of(CLI::App& app, int argc, char** argv, Run&& run)
{
    for (int signal : {SIGINT, SIGTERM})
        std::signal(signal, [](int) { interrupted = 1; });
    fill_standard_descriptors();
    int status = 4;
    try {
        app.parse(argc, argv);
        status = run();
    } catch (const CLI::ParseError& words) {
        status = app.exit(words) == 0 ? 0 : 1;
    } catch (const std::exception& failure) {
        fmt::print(stderr, "{}\n", failure.what());
    }
    if (std::cout.flush() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0)
        return status;
    fmt::print(stderr, "standard output cannot be written: {}\n", std::strerror(errno));
    return 4;
}

} // namespace sample
