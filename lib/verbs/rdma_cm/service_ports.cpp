#include "rdma_cm/service_ports.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>
#include <utility>

#include "engine/failure.hpp"
#include "engine/tree.hpp"

namespace weftio::verbs::rdma_cm {

namespace {

/// Whether the path still names the open file: its last owner may have removed it.
bool is_at(int number, const std::string& path) noexcept
{
    struct stat opened, named;
    return ::fstat(number, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/// Users share a wire, and so its ports. The sticky bit keeps them from removing each other's files.
std::string folder_for(const std::string& name)
{
    constexpr mode_t for_all = 01777;
    for (const auto& parent : default_parents()) {
        const std::string path = (parent / name).string();
        if (::mkdir(path.c_str(), for_all) == 0)
            ::chmod(path.c_str(), for_all); // whatever the umask says
        if (::access(path.c_str(), W_OK | X_OK) == 0)
            return path;
    }
    throw failure{EACCES};
}

/// Locked files of this process, 0 for none. A child of fork() may read it whatever other threads were doing.
constinit std::array<std::atomic<int>, 4096> locked{};

void replace_locked(int before, int now) noexcept
{
    for (std::atomic<int>& each : locked)
        if (int expected = before; each.compare_exchange_strong(expected, now))
            return;
}

} // namespace

void leave_ports_in_child() noexcept
{
    for (std::atomic<int>& each : locked)
        if (const int file = each.exchange(0); file != 0)
            ::close(file);
}

claimed_port::claimed_port(descriptor file, std::string path) : file_(std::move(file)), path_(std::move(path))
{
    replace_locked(0, file_.number());
}

claimed_port& claimed_port::operator=(claimed_port&& other) noexcept
{
    release();
    file_ = std::move(other.file_);
    path_ = std::move(other.path_);
    return *this;
}

void claimed_port::release() noexcept
{
    if (file_.number() >= 0 && is_at(file_.number(), path_))
        ::unlink(path_.c_str());
    if (file_.number() >= 0)
        replace_locked(file_.number(), 0);
    file_ = {};
}

service_ports::service_ports(const std::string& wire)
{
    std::string name = "weftio-ports-";
    for (const char each : wire)
        name += std::isalnum(static_cast<unsigned char>(each)) != 0 ? each : '-';
    folder_ = folder_for(name);
}

std::string service_ports::path_of(std::uint16_t space, std::uint16_t port, family of) const
{
    return fmt::format("{}/{:04x}{}-{}", folder_, space, of == family::ipv4 ? "" : ".6", port);
}

std::optional<claimed_port> service_ports::claim(std::uint16_t space, std::uint16_t port, family of,
                                                 const net::roce_gid& at) const
{
    const std::string path = path_of(space, port, of);
    for (;;) {
        descriptor file =
            out_of_the_way(descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644)));
        if (file.number() < 0 && errno == EACCES) // of another user, alive or dead
            return std::nullopt;
        require_call(file.number() >= 0);
        if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0)
            return std::nullopt;
        if (!is_at(file.number(), path))
            continue;
        require_call(::pwrite(file.number(), at.data(), at.size(), 0) == static_cast<ssize_t>(at.size()));
        return claimed_port(std::move(file), path);
    }
}

std::optional<net::roce_gid> service_ports::owner(std::uint16_t space, std::uint16_t port, family of) const
{
    const descriptor file(::open(path_of(space, port, of).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    net::roce_gid at{};
    if (file.number() < 0 || ::flock(file.number(), LOCK_SH | LOCK_NB) == 0 ||
        ::pread(file.number(), at.data(), at.size(), 0) != static_cast<ssize_t>(at.size()))
        return std::nullopt;
    return at;
}

} // namespace weftio::verbs::rdma_cm
