#include "tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "weftio/error.hpp"

namespace weftio::verbs {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "weftio-run-";

/// A file that its process keeps locked as long as it lives.
class lock_file {
 public:
    explicit lock_file(const fs::path& folder)
        : descriptor_(::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600))
    {
        if (descriptor_ < 0 || ::flock(descriptor_, LOCK_EX | LOCK_NB) != 0)
            throw std::system_error(errno, std::generic_category(), (folder / "lock").string());
    }
    lock_file(const lock_file&) = delete;
    lock_file& operator=(const lock_file&) = delete;
    ~lock_file()
    {
        if (descriptor_ >= 0)
            ::close(descriptor_);
    }
    int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
    int descriptor_;
};

/// The process number in the name of a folder; 0 for other names.
pid_t process_of(std::string_view name) noexcept
{
    pid_t process = 0;
    if (!name.starts_with(prefix))
        return 0;
    name.remove_prefix(prefix.size());
    const auto got = std::from_chars(name.data(), name.data() + name.size(), process);
    return got.ec == std::errc{} && got.ptr != name.data() + name.size() && *got.ptr == '-' && process > 0 ? process
                                                                                                           : 0;
}

/// Whether the lock is held. A folder without a lock file counts as held for a minute, because its tree may still be
/// being made.
bool is_held(const fs::path& folder, const struct stat& made)
{
    const int lock = ::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0)
        return ::time(nullptr) - made.st_mtime < 60;
    const bool held = ::flock(lock, LOCK_EX | LOCK_NB) != 0;
    ::close(lock);
    return held;
}

void sweep_one(const fs::path& folder)
{
    const pid_t process = process_of(folder.filename().string());
    struct stat found;
    if (process == 0 || ::lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != ::geteuid())
        return;
    // If the number is our own, our process has replaced the program that made the folder.
    const bool dead = process == ::getpid() || (::kill(process, 0) != 0 && errno == ESRCH);
    std::error_code ignored;
    if (dead && !is_held(folder, found))
        fs::remove_all(folder, ignored);
}

bool is_same_file(int descriptor, const char* path) noexcept
{
    struct stat opened, named;
    return ::fstat(descriptor, &opened) == 0 && ::stat(path, &named) == 0 && opened.st_ino == named.st_ino &&
           opened.st_dev == named.st_dev;
}

std::string make_folder(const fs::path& parent)
{
    std::string name = (fs::canonical(parent) / fmt::format("{}{}-XXXXXX", prefix, ::getpid())).string();
    // Readable for others, like /sys: programs change their user.
    if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0755) != 0)
        throw std::system_error(errno, std::generic_category(), parent.string());
    return name;
}

} // namespace

std::vector<fs::path> default_parents()
{
    std::vector<fs::path> found{"/dev/shm"};
    if (const char* named = std::getenv("TMPDIR"); named != nullptr && *named == '/')
        found.emplace_back(named);
    found.emplace_back("/tmp");
    return found;
}

tree::tree(std::span<const device_description> devices, const std::vector<fs::path>& parents) : process_(::getpid())
{
    std::string reasons;
    for (const fs::path& parent : parents) {
        sweep_trees(parent);
        std::string made;
        try {
            made = make_folder(parent);
            lock_file lock(made);
            describe(made, devices);
            path_ = made;
            lock_path_ = made + "/lock";
            lock_ = lock.release();
            return;
        } catch (const std::system_error& wrong) {
            reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", parent.string(), wrong.code().message());
            std::error_code ignored;
            if (!made.empty())
                fs::remove_all(made, ignored);
        }
    }
    throw error(errc::permission_denied,
                fmt::format("weftio-run: cannot create the files that describe the devices ({}); set TMPDIR to a "
                            "folder with 1 MB of space that this user can write to",
                            reasons));
}

tree::~tree()
{
    if (process_ != ::getpid())
        return;
    unlock();
    std::error_code ignored;
    fs::remove_all(path_, ignored);
}

void tree::unlock() noexcept
{
    if (is_same_file(lock_, lock_path_.c_str())) // the program may have closed our descriptor
        ::close(lock_);
    lock_ = -1;
}

void sweep_trees(const fs::path& parent) noexcept
try {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(parent, ignored))
        sweep_one(entry.path());
} catch (const std::exception&) { // the next process tries again
}

} // namespace weftio::verbs
