#include "show.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "options.hpp"
#include "program.hpp"
#include "verbs/device_paths.hpp"

namespace weftio::run {

namespace {

namespace fs = std::filesystem;

/// A socket that is closed at the end.
class connection {
 public:
    /// @return whether somebody answers there
    bool open(const std::string& path)
    {
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        if (path.size() >= sizeof where.sun_path)
            return false;
        std::memcpy(where.sun_path, path.c_str(), path.size());
        const timeval patience{.tv_sec = 2, .tv_usec = 0};
        return ::setsockopt(number_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
               ::connect(number_, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0;
    }
    std::string read_all() const
    {
        std::string text;
        std::array<char, 4096> some;
        for (ssize_t got; (got = ::read(number_, some.data(), some.size())) > 0;)
            text.append(some.data(), static_cast<std::size_t>(got));
        return text;
    }
    connection() = default;
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection() { ::close(number_); }

 private:
    const int number_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

std::string ask(const fs::path& place, const std::string& process)
{
    const std::string wanted = verbs::folder_prefix + process + "-";
    std::error_code ignored;
    for (const fs::directory_entry& each : fs::directory_iterator(place, ignored)) {
        connection to;
        if (each.path().filename().string().starts_with(wanted) && to.open((each.path() / verbs::show_name).string()))
            if (std::string text = to.read_all(); !text.empty())
                return text;
    }
    return {};
}

} // namespace

std::string look_at(const std::string& process)
{
    const char* const temporary = std::getenv("TMPDIR");
    for (const char* const place : {"/dev/shm", temporary ? temporary : "/tmp", "/tmp"})
        if (std::string text = ask(place, process); !text.empty())
            return text;
    throw refusal(own_failure, "--show " + process +
                                   ": no such process answers; name one of yours that weftio-run has started and that "
                                   "has searched for devices");
}

} // namespace weftio::run
