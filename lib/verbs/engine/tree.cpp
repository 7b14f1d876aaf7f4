#include "tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "weftio/error.hpp"

namespace weftio::verbs {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "weftio-run-";
constexpr std::size_t lock_bytes = 1; ///< as long as a page

/// Makes the lock file of a folder, under a name that is not its own until it is locked. The mapping, which is never
/// accessed, has the lock: programs close descriptors that are not theirs, and a child of fork() has no part of it.
void* lock(const fs::path& folder)
{
    const fs::path made = folder / "lock.new";
    const int file = ::open(made.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* at = MAP_FAILED;
    if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0)
        at = ::mmap(nullptr, lock_bytes, PROT_NONE, MAP_SHARED, file, 0);
    int why = errno;
    if (file >= 0)
        ::close(file);
    if (at != MAP_FAILED && ::madvise(at, lock_bytes, MADV_DONTFORK) == 0 &&
        ::rename(made.c_str(), (folder / "lock").c_str()) == 0)
        return at;
    why = at == MAP_FAILED ? why : errno;
    if (at != MAP_FAILED)
        ::munmap(at, lock_bytes);
    throw std::system_error(why, std::generic_category(), made.string());
}

/// Whether the name has a process number behind the prefix, and then a dash.
bool is_name_of_tree(std::string_view name) noexcept
{
    pid_t process = 0;
    if (!name.starts_with(prefix))
        return false;
    name.remove_prefix(prefix.size());
    const char* const end = name.data() + name.size();
    const auto got = std::from_chars(name.data(), end, process);
    return got.ec == std::errc{} && got.ptr != end && *got.ptr == '-' && process > 0;
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
    struct stat found;
    std::error_code ignored;
    if (is_name_of_tree(folder.filename().string()) && ::lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
        found.st_uid == ::geteuid() && !is_held(folder, found))
        fs::remove_all(folder, ignored);
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
            lock_ = lock(made);
            describe(made, devices);
            path_ = made;
            return;
        } catch (const std::system_error& wrong) {
            if (void* const held = std::exchange(lock_, nullptr))
                ::munmap(held, lock_bytes);
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
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    ::munmap(lock_, lock_bytes);
}

void sweep_trees(const fs::path& parent) noexcept
try {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(parent, ignored))
        sweep_one(entry.path());
} catch (const std::exception&) { // the next process tries again
}

} // namespace weftio::verbs
