#include "rdma_cm/service_ports.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/log.hpp"
#include "core/write_signals.hpp"
#include "engine/failure.hpp"
#include "wires/file_locks.hpp"

namespace weftio::verbs::rdma_cm {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "weftio-ports-";
constexpr off_t owner_byte = 0; ///< of the file of a port: its owner has the lock on it

/// Whether the path still names the open file: its last owner may have removed it.
bool is_at(int number, const std::string& path) noexcept
{
    struct stat opened, named;
    return ::fstat(number, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

/// Part of a file name. Different texts have different names: characters other than letters, digits and . _ - become
/// %XX.
std::string name_for(std::string_view text)
{
    std::string name;
    for (const char each : text) {
        const auto letter = static_cast<unsigned char>(each);
        if (std::isalnum(letter) != 0 || letter == '.' || letter == '_' || letter == '-')
            name += each;
        else
            name += fmt::format("%{:02X}", letter);
    }
    return name;
}

std::string file_name(std::uint16_t space, std::uint16_t port, family of)
{
    return fmt::format("{:04x}{}-{}", space, of == family::ipv4 ? "" : ".6", port);
}

/// The paths of what is in a folder. Without those that cannot be read.
std::vector<std::string> paths_in(const std::string& folder)
{
    std::vector<std::string> found;
    std::error_code wrong;
    for (fs::directory_iterator at(folder, wrong), end; !wrong && at != end; at.increment(wrong))
        found.push_back(at->path().string());
    return found;
}

/// Whether it is the name of a folder of any user for the ports of a wire.
bool is_folder_of(std::string_view name, std::string_view wire) noexcept
{
    if (!name.starts_with(prefix))
        return false;
    name.remove_prefix(prefix.size());
    const std::size_t user = name.find_first_not_of("0123456789");
    return user != 0 && user != name.npos && name[user] == '-' && name.substr(user + 1) == wire;
}

std::string parent_of(const std::vector<fs::path>& parents)
{
    for (const fs::path& each : parents)
        if (::faccessat(AT_FDCWD, each.c_str(), W_OK | X_OK, AT_EACCESS) == 0)
            return each.string();
    throw failure{EACCES};
}

[[noreturn]] void refuse_file(const std::string& path, int why, const std::string& advice)
{
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio-run: rdma_bind_addr: cannot write {}, which would say who has the port: {}; {}",
                           path, std::strerror(why), advice);
    });
    throw failure{why};
}

[[noreturn]] void refuse_file(const std::string& path, int why)
{
    if (why == EFBIG)
        refuse_file(path, why, "raise the file size limit of this process with \"ulimit -f unlimited\"");
    if (why == ENOSPC || why == EDQUOT)
        refuse_file(path, why, "remove files from that file system");
    refuse_file(path, why, fmt::format("let user {} write there", ::geteuid()));
}

/// Opens a folder, made if need be, with a lock that keeps sweep_ports() out as long as the descriptor is open.
descriptor enter(const std::string& path)
{
    constexpr mode_t mode = 0755; // other users read who has a port of an interface
    for (;;) {
        if (::mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
            refuse_file(path, errno);
        descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
        if (folder.number() < 0 && errno == ENOENT) // its last port has been given back
            continue;
        struct stat found {};
        if (folder.number() < 0 || ::fstat(folder.number(), &found) != 0)
            refuse_file(path, errno);
        if (found.st_uid != ::geteuid())
            refuse_file(path, EACCES, fmt::format("it belongs to user {}: remove it", found.st_uid));
        if ((found.st_mode & 07777) != mode) // the umask says otherwise
            ::fchmod(folder.number(), mode);
        while (::flock(folder.number(), LOCK_SH) != 0)
            require_call(errno == EINTR);
        if (is_at(folder.number(), path))
            return folder;
    }
}

/// Removes a file of a port, and its folder if there are no others in it. @pre the caller has its lock
void remove_file(const std::string& path) noexcept
{
    ::unlink(path.c_str());
    ::rmdir(path.substr(0, path.rfind('/')).c_str());
}

void write_owner(const descriptor& file, const std::string& path, const net::roce_gid& at)
{
    const core::no_write_signals only_fails;
    errno = 0;
    if (::pwrite(file.number(), at.data(), at.size(), 0) == static_cast<ssize_t>(at.size()))
        return;
    const int why = errno != 0 ? errno : ENOSPC;
    only_fails.take();
    remove_file(path);
    refuse_file(path, why);
}

/// Opens a file of a port if a process has the port. Another user may have put anything there: this never waits.
descriptor open_owned(const std::string& path)
{
    descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    return file.number() >= 0 && wires::locked_by_others(file.number(), owner_byte, 1) ? std::move(file) : descriptor();
}

void sweep_file(const descriptor& folder, const char* name)
{
    const descriptor file(::openat(folder.number(), name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    if (file.number() >= 0 && !wires::locked_by_others(file.number(), owner_byte, 1))
        ::unlinkat(folder.number(), name, 0);
}

/// Who takes a port shares the lock on the folder, so that no file is removed between its opening and its locking.
/// Another folder may be at the path by now: files are those of the locked one.
void sweep_folder(const std::string& path)
{
    const descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    struct stat found {};
    if (folder.number() < 0 || ::fstat(folder.number(), &found) != 0 || found.st_uid != ::geteuid() ||
        ::flock(folder.number(), LOCK_EX | LOCK_NB) != 0)
        return;
    for (const std::string& each : paths_in(path))
        sweep_file(folder, each.c_str() + each.rfind('/') + 1);
    ::rmdir(path.c_str());
    ::flock(folder.number(), LOCK_UN); // a child of fork() may have the descriptor
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
        remove_file(path_);
    if (file_.number() >= 0)
        replace_locked(file_.number(), 0);
    file_ = {};
}

void sweep_ports(const std::vector<fs::path>& parents) noexcept
try {
    const std::string begin = fmt::format("{}{}-", prefix, ::geteuid());
    for (const std::string& each : paths_in(parent_of(parents)))
        if (each.substr(each.rfind('/') + 1).starts_with(begin))
            sweep_folder(each);
} catch (const failure&) {        // no folder, so no ports
} catch (const std::exception&) { // the next process tries again
}

service_ports::service_ports(const std::string& wire, const std::vector<fs::path>& parents)
    : parent_(parent_of(parents)), wire_(name_for(wire))
{}

std::string service_ports::own_folder() const
{
    return (fs::path(parent_) / fmt::format("{}{}-{}", prefix, ::geteuid(), wire_)).string();
}

/// Those of all users.
std::vector<std::string> service_ports::folders() const
{
    std::vector<std::string> found = paths_in(parent_);
    std::erase_if(found,
                  [this](std::string_view path) { return !is_folder_of(path.substr(path.rfind('/') + 1), wire_); });
    return found;
}

std::optional<claimed_port> service_ports::claim(std::uint16_t space, std::uint16_t port, family of,
                                                 const net::roce_gid& at) const
{
    constexpr mode_t mode = 0644;
    const std::string own = own_folder(), name = file_name(space, port, of), path = own + "/" + name;
    for (;;) {
        const descriptor entered = enter(own);
        descriptor file =
            out_of_the_way(descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode)));
        if (file.number() < 0 && errno == ENOENT) // the folder's last port has been given back
            continue;
        if (file.number() < 0)
            refuse_file(path, errno);
        ::fchmod(file.number(), mode); // whatever the umask says
        if (!wires::try_lock(file.number(), owner_byte))
            return std::nullopt;
        if (!is_at(file.number(), path))
            continue;
        for (const std::string& each : folders())
            if (each != own && open_owned(each + "/" + name).number() >= 0) {
                remove_file(path);
                return std::nullopt;
            }
        write_owner(file, path, at);
        return claimed_port(std::move(file), path);
    }
}

std::optional<net::roce_gid> service_ports::owner(std::uint16_t space, std::uint16_t port, family of) const
{
    for (const std::string& each : folders())
        if (const descriptor file = open_owned(each + "/" + file_name(space, port, of)); file.number() >= 0)
            if (net::roce_gid at{}; ::pread(file.number(), at.data(), at.size(), 0) == static_cast<ssize_t>(at.size()))
                return at;
    return std::nullopt;
}

} // namespace weftio::verbs::rdma_cm
