#include "storage/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include "core/log.hpp"
#include "storage/recognition.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

open_file::open_file(std::shared_ptr<context> engine, int descriptor)
    : engine_(std::move(engine)), descriptor_(descriptor)
{
    engine_->require_process();
    flags_ = fcntl(descriptor, F_GETFL);
    struct stat about {};
    if (flags_ < 0 || fstat(descriptor, &about) != 0)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: file: descriptor {} is not open ({}); pass one returned by open(2)",
                                descriptor, std::strerror(errno)));
    if ((flags_ & O_PATH) != 0)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: file: descriptor {} was opened with O_PATH and cannot read or write; open it without",
                        descriptor));
    if (!S_ISREG(about.st_mode) && !S_ISBLK(about.st_mode))
        throw error(errc::invalid_argument, fmt::format("weftio: file: descriptor {} is neither a regular file nor a "
                                                        "block device and has no offsets; use read(2) and write(2)",
                                                        descriptor));
    if ((flags_ & O_APPEND) != 0 && (flags_ & O_ACCMODE) != O_RDONLY)
        throw error(errc::invalid_argument, fmt::format("weftio: file: descriptor {} was opened with O_APPEND, so "
                                                        "Linux writes at the end, whatever the offset; open it without",
                                                        descriptor));
    device_ = about.st_dev;
    inode_ = about.st_ino;
    direct_ = (flags_ & O_DIRECT) != 0;
    if (engine_->settings.names_mounts())
        find_mount();
    if (direct_ || engine_->options().reopen_direct)
        find_alignment();
}

open_file::~open_file()
{
    engine_->leave(key_);
    if (engine_->same_process())
        engine_->named.leave(key_, engine_->kernels_user());
    engine_->rings.leave_files(name_, descriptors);
    for (const auto* each : {&second_direct_, &second_buffered_})
        if (const int descriptor = each->load(); descriptor >= 0)
            close(descriptor);
}

std::shared_ptr<open_file> open_file::open(std::shared_ptr<context> engine, int descriptor)
{
    std::shared_ptr<open_file> made(new open_file(std::move(engine), descriptor));
    made->key_ = made->engine_->enter(made);
    made->engine_->named.enter(*made);
    return made;
}

void open_file::find_alignment()
{
#ifdef STATX_DIOALIGN
    struct statx about {};
    if (statx(descriptor_, "", AT_EMPTY_PATH, STATX_DIOALIGN, &about) == 0 && (about.stx_mask & STATX_DIOALIGN) != 0 &&
        about.stx_dio_offset_align != 0) {
        offset_align_ = about.stx_dio_offset_align;
        memory_align_ = std::max(about.stx_dio_mem_align, 1U);
        return;
    }
#endif
    struct statfs system {};
    if (fstatfs(descriptor_, &system) == 0 &&
        system.f_type == TMPFS_MAGIC) // it is memory, and takes O_DIRECT for nothing
        offset_align_ = memory_align_ = 1;
}

void open_file::find_mount()
{
    const std::optional<mount_entry> mount = mount_of_descriptor("/", descriptor_);
    if (!mount)
        return;
    posix_at_most_ = engine_->settings.posix_at_most(mount->file_system);
    denied_ = engine_->settings.denies(mount->file_system, mount->point);
}

const vendor_file* open_file::vendor() noexcept
{
    const vendor_library* const library = engine_->vendor();
    if (!library)
        return nullptr;
    if (!vendor_tried_.load(std::memory_order_acquire)) {
        const std::lock_guard lock(mutex_);
        if (!vendor_tried_.load(std::memory_order_relaxed)) {
            if (void* const handle = library->enter_file(descriptor_))
                vendor_.reset(new (std::nothrow) vendor_file(*library, handle));
            vendor_tried_.store(true, std::memory_order_release);
        }
    }
    return vendor_.get();
}

int open_file::second(std::atomic<int>& which, bool direct) noexcept
{
    if (const int known = which.load(std::memory_order_acquire); known != unopened)
        return known;
    const std::lock_guard lock(mutex_);
    if (which.load(std::memory_order_relaxed) == unopened)
        which.store(reopen(direct), std::memory_order_release);
    return which.load(std::memory_order_relaxed);
}

int open_file::reopen(bool direct) const noexcept
{
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor_);
    constexpr int kept = O_ACCMODE | O_SYNC | O_DSYNC | O_NOATIME;
    const int made = ::open(path, (flags_ & kept) | O_CLOEXEC | (direct ? O_DIRECT : 0));
    int failure = errno;
    struct stat about {};
    if (made >= 0 && fstat(made, &about) == 0 && about.st_dev == device_ && about.st_ino == inode_)
        return made;
    if (made >= 0) {
        close(made);
        failure = EBADF; // the number is another file's by now
    }
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio: file: descriptor {} cannot be opened a second time {} O_DIRECT ({}): {}",
                           descriptor_, direct ? "with" : "without", std::strerror(failure),
                           direct ? "reads and writes use the page cache"
                                  : "writes that are not aligned for O_DIRECT fail with EINVAL");
    });
    return -1;
}

} // namespace weftio::storage
