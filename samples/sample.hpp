// Shared by all samples: arguments, Ctrl-C, errors in one line, exit statuses.
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

/// 1 after the user has asked the program to end, by Ctrl-C or SIGTERM.
inline volatile std::sig_atomic_t interrupted = 0;

/// Opens /dev/full in place of standard input, output or error if one is closed. Otherwise the next file that the
/// program opens, such as a capture, would get that descriptor, and printed text would be written to it.
inline void fill_standard_descriptors()
{
    for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(descriptor, F_GETFD) < 0)
            (void)::open("/dev/full", O_WRONLY); // gets the lowest free descriptor
}

/// Parses the arguments and calls `run`. Returns the result of run(); 1 for wrong arguments; 4 if run() has thrown.
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
