#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weftio::apps {

namespace {

/// fill_standard_descriptors() has found standard output closed.
bool output_was_closed = false;

std::string failed(const std::string& path, int error)
{
    return fmt::format("{}: {}: cannot be written ({}); name a writable file", program_invocation_short_name, path,
                       std::strerror(error));
}

} // namespace

void fill_standard_descriptors() noexcept
{
    output_was_closed = ::fcntl(STDOUT_FILENO, F_GETFD) < 0;
    for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(descriptor, F_GETFD) < 0)
            (void)::open("/dev/full", O_WRONLY); // becomes the lowest that is free
}

void say(std::string_view line) noexcept
{
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

bool no_complaint(std::string_view error) noexcept
{
    if (!error.empty())
        say(error);
    return error.empty();
}

std::string output_failed(int error)
{
    if (output_was_closed || ::fcntl(STDOUT_FILENO, F_GETFD) < 0)
        return fmt::format("{}: standard output is closed; redirect it to a file or to /dev/null",
                           program_invocation_short_name);
    return fmt::format("{}: standard output cannot be written ({})", program_invocation_short_name,
                       std::strerror(error));
}

std::string print_out(std::string_view text)
{
    errno = 0;
    bool good = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return good ? "" : output_failed(errno);
}

std::string write_file(const std::string& path, std::string_view text)
{
    if (path == "-")
        return print_out(text);
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file)
        return failed(path, errno);
    bool good = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    int error = errno;
    if (std::fclose(file) != 0 && good) {
        good = false;
        error = errno;
    }
    return good ? "" : failed(path, error);
}

std::string try_file(const std::string& path)
{
    if (path.empty() || path == "-")
        return {};
    std::FILE* file = std::fopen(path.c_str(), "a");
    if (!file)
        return failed(path, errno);
    std::fclose(file);
    return {};
}

} // namespace weftio::apps
