#include "bench/bench_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "bench/pattern.hpp"
#include "weftio/error.hpp"

namespace weftio::files {

namespace {

constexpr std::size_t part = 1 << 20;

[[noreturn]] void fail(const std::string& path, std::string_view what)
{
    const bool medium = errno == ENOSPC || errno == EDQUOT || errno == EIO;
    throw error(medium ? errc::device_error : errc::invalid_argument,
                fmt::format("weftio-files: {}: {}: {}", path, what, std::strerror(errno)));
}

constexpr std::array ending_signals{SIGINT, SIGTERM, SIGHUP, SIGXFSZ};
/// The file to remove when a signal ends the program; empty: none.
std::array<char, PATH_MAX> to_remove{};

/// Removes the file, and lets the signal end the program as it would without.
void remove_and_end(int signal)
{
    ::unlink(to_remove.data());
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

/// @param path  empty: the signals do again what they did
void remove_on_signals(const std::string& path)
{
    for (const int each : ending_signals)
        ::signal(each, SIG_DFL);
    const std::size_t count = path.copy(to_remove.data(), to_remove.size() - 1);
    to_remove[count] = 0;
    if (!path.empty())
        for (const int each : ending_signals)
            ::signal(each, remove_and_end);
}

} // namespace

bench_file::bench_file(const bench_options& options) : path_(options.path)
{
    if (path_.empty())
        path_ = std::filesystem::temp_directory_path();
    std::error_code unreadable; // told by what follows
    if (std::filesystem::is_directory(path_, unreadable))
        path_ = std::filesystem::path(path_) / fmt::format("weftio-files.{}", ::getpid());
    if (!std::filesystem::exists(path_, unreadable) && !unreadable) {
        make(options);
    } else if (unreadable) {
        errno = unreadable.value();
        fail(path_, "cannot be examined");
    } else if (options.what != bench_options::load::read || options.verify) {
        throw error(
            errc::in_use,
            fmt::format(
                "weftio-files: {}: already exists; --write, --mixed and --verify create a new file: name another",
                path_));
    }
    try {
        open(options);
    } catch (...) {
        let_go();
        throw;
    }
}

void bench_file::open(const bench_options& options)
{
    // A FIFO would wait for a writer.
    const int flags = O_CLOEXEC | O_NONBLOCK | (options.direct ? O_DIRECT : 0);
    descriptor_ = ::open(path_.c_str(), flags | (made_ ? O_RDWR : O_RDONLY));
    if (descriptor_ < 0)
        fail(path_, options.direct && errno == EINVAL ? "cannot be opened with --direct" : "cannot be opened");
    if (made_)
        return;
    measure(options);
    require_room(options);
}

/// How much of a file or block device that is there is used.
void bench_file::measure(const bench_options& options)
{
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0)
        fail(path_, "cannot be examined");
    if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))
        throw error(errc::invalid_argument,
                    fmt::format("weftio-files: {}: neither a regular file nor a block device; name one", path_));
    const off_t end = ::lseek(descriptor_, 0, SEEK_END); // also of a block device
    if (end < 0)
        fail(path_, "its size cannot be read");
    bytes_ = static_cast<std::uint64_t>(end);
    if (options.file_bytes > bytes_)
        throw error(errc::invalid_argument,
                    fmt::format("weftio-files: {}: already exists and has {} bytes, fewer than the {} of --file-size; "
                                "leave that out, or name a new file",
                                path_, bytes_, options.file_bytes));
    bytes_ = options.file_bytes != 0 ? options.file_bytes : bytes_;
}

void bench_file::require_room(const bench_options& options) const
{
    const bool is_there = descriptor_ >= 0; // else it is about to be made
    for (const std::uint64_t size : options.sizes)
        if (size > bytes_ / options.workers)
            throw error(
                errc::invalid_argument,
                fmt::format("weftio-files: {}: {} workers with operations of {} bytes each exceed its {} bytes; "
                            "give a smaller --size, fewer --workers or a larger {}",
                            path_, options.workers, size, bytes_, is_there ? "file" : "--file-size"));
}

void bench_file::let_go() noexcept
{
    if (descriptor_ >= 0)
        ::close(descriptor_);
    if (made_) {
        ::unlink(path_.c_str());
        remove_on_signals("");
    }
}

bench_file::~bench_file()
{
    let_go();
}

void bench_file::make(const bench_options& options)
{
    constexpr std::uint64_t usual_bytes = 256 << 20;
    bytes_ = options.file_bytes != 0 ? options.file_bytes : usual_bytes;
    require_room(options);
    std::error_code unreadable;
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(path_, unreadable)))
        throw error(errc::not_found,
                    fmt::format("weftio-files: {}: a symbolic link to {}, which does not exist; name a file", path_,
                                std::filesystem::read_symlink(path_, unreadable).string()));
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor_ < 0)
        fail(path_, "cannot be created");
    made_ = true;
    remove_on_signals(path_);
    try {
        if (errno = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes_)); errno != 0)
            fail(path_, fmt::format("no space for {} bytes", bytes_));
        write_pattern();
    } catch (...) {
        let_go();
        throw;
    }
    ::close(descriptor_);
}

void bench_file::write_pattern()
{
    std::vector<std::byte> room(part);
    for (std::uint64_t at = 0; at < bytes_;) {
        const std::size_t count = std::min<std::uint64_t>(part, bytes_ - at);
        fill_pattern({room.data(), count}, at);
        const ssize_t written = ::pwrite(descriptor_, room.data(), count, static_cast<off_t>(at));
        if (written <= 0)
            fail(path_, "cannot be written");
        at += static_cast<std::uint64_t>(written);
    }
    if (::fsync(descriptor_) != 0)
        fail(path_, "cannot be written");
}

std::string bench_file::verify() const
{
    std::vector<std::byte> room(part);
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    std::string complaint = file < 0 ? std::strerror(errno) : "";
    for (std::uint64_t at = 0; at < bytes_ && complaint.empty();) {
        const std::size_t count = std::min<std::uint64_t>(part, bytes_ - at);
        const ssize_t got = ::pread(file, room.data(), count, static_cast<off_t>(at));
        if (got <= 0)
            complaint = fmt::format("ends at byte {}: {}", at, got < 0 ? std::strerror(errno) : "end of file");
        else if (const auto wrong = first_wrong({room.data(), static_cast<std::size_t>(got)}, at))
            complaint = fmt::format("byte {} is wrong", at + *wrong);
        at += static_cast<std::uint64_t>(std::max<ssize_t>(got, 0));
    }
    if (file >= 0)
        ::close(file);
    return complaint.empty() ? "" : fmt::format("after all runs: {}: {}", path_, complaint);
}

} // namespace weftio::files
