#include "report/output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weftio::replay {

namespace {

std::string failed(const std::string& path, int error)
{
    return fmt::format("weftio-replay: {}: cannot be written ({}); name a file that can", path, std::strerror(error));
}

} // namespace

void say(std::string_view line) noexcept
{
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

std::string print_out(std::string_view text)
{
    errno = 0;
    bool good = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return good ? "" : fmt::format("weftio-replay: standard output cannot be written ({})", std::strerror(errno));
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

} // namespace weftio::replay
