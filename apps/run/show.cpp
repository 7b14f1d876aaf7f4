#include "show.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

#include "options.hpp"
#include "program.hpp"
#include "verbs/device_paths.hpp"

namespace weftio::run {

namespace {

namespace fs = std::filesystem;

constexpr int patience_seconds = 2;

/// A socket that is closed at the end.
class connection {
 public:
    /// Blocks for two seconds at most. @return whether somebody listens there; else errno says why not
    bool open(const std::string& path) const
    {
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        if (path.size() >= sizeof where.sun_path) {
            errno = ENAMETOOLONG;
            return false;
        }
        std::memcpy(where.sun_path, path.c_str(), path.size());
        const timeval patience{.tv_sec = patience_seconds, .tv_usec = 0};
        return ::setsockopt(number_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
               ::setsockopt(number_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 && // of connect()
               ::connect(number_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
    }
    /// Reads until the other end closes. Each part may take two seconds. @return whether all came; else errno says why
    /// not
    bool read_all(std::string& text) const
    {
        std::array<char, 4096> some;
        ssize_t got = 0;
        while ((got = ::read(number_, some.data(), some.size())) > 0)
            text.append(some.data(), static_cast<std::size_t>(got));
        if (got == 0 && text.empty())
            errno = ECONNRESET;
        return got == 0 && !text.empty();
    }
    connection() = default;
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() { ::close(number_); }

 private:
    const int number_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

/// The sockets of a process. A process that had its number before may have left one.
std::vector<std::string> sockets_of(const std::string& process)
{
    const std::string wanted = verbs::folder_prefix + process + "-";
    const char* const temporary = std::getenv("TMPDIR");
    std::vector<std::string> all;
    std::error_code ignored;
    for (const char* const place : {"/dev/shm", temporary ? temporary : "/tmp", "/tmp"})
        for (const fs::directory_entry& each : fs::directory_iterator(place, ignored))
            if (each.path().filename().string().starts_with(wanted))
                all.push_back((each.path() / verbs::show_name).string());
    return all;
}

/// The letter of proc(5) for the state of a process; a space when it cannot be read.
char state_of(const std::string& process)
{
    std::ifstream file("/proc/" + process + "/stat");
    std::string line;
    std::getline(file, line, '\0');
    const std::size_t name_end = line.rfind(')'); // the name may have any other character
    return name_end == line.npos || name_end + 2 >= line.size() ? ' ' : line[name_end + 2];
}

/// Whether a process has loaded what weftio-run preloads.
bool is_below_weftio_run(const std::string& process)
{
    std::ifstream file("/proc/" + process + "/maps");
    for (std::string line; std::getline(file, line);)
        if (line.find("/libweftio-verbs-preload.so") != line.npos)
            return true;
    return false;
}

/// Why a process does not answer. @param error  errno of the last of its sockets; ENOENT: it has none
std::string reason(const std::string& process, int error)
{
    if (::kill(std::stoi(process), 0) != 0)
        return errno == EPERM ? "is a process of another user; ask as that user or as root"
                              : "no such process; name one that weftio-run has started";
    const char state = state_of(process);
    if (state == 'Z' || state == 'X')
        return "has ended";
    if (error == ENOENT && !is_below_weftio_run(process))
        return "was not started by weftio-run; name a process that was";
    if (error == ENOENT)
        return "has not searched for devices yet; ask again when it has";
    if (state == 'T')
        return fmt::format("is stopped; continue it (kill -CONT {}) and ask again", process);
    if (state == 't')
        return "is stopped by a debugger; continue it there and ask again";
    if (error == EAGAIN)
        return fmt::format("does not answer within {} s; ask again", patience_seconds);
    return fmt::format("does not answer ({}); if it closes descriptors that it has not opened, have it leave them open",
                       std::strerror(error));
}

} // namespace

std::string look_at(const std::string& process)
{
    int error = ENOENT;
    for (const std::string& path : sockets_of(process)) {
        const connection to;
        std::string text;
        if (to.open(path) && to.read_all(text))
            return text;
        if (error != EAGAIN) // what a former process has left refuses
            error = errno;
    }
    throw refusal(own_failure, fmt::format("--show {}: {}", process, reason(process, error)));
}

} // namespace weftio::run
