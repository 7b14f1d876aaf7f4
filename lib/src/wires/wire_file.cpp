#include "wires/wire_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "core/write_signals.hpp"
#include "weftio/error.hpp"
#include "wires/file_locks.hpp"

namespace weftio::wires {

namespace {

constexpr std::size_t longest_name = 64;
constexpr off_t join_byte = 0;  ///< locked while somebody joins or leaves
constexpr off_t first_slot = 1; ///< the slot k holds byte first_slot + k

/// Whose descriptors a child of fork() closes. Of more files than this it keeps the locks.
constinit std::array<std::atomic<wire_file*>, 64> of_this_process{};

/// posix_fallocate() without signals. @return 0, or errno
int reserve_bytes(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept
{
    const core::no_write_signals only_fails;
    int why = EINTR;
    while (why == EINTR)
        why = ::posix_fallocate(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    if (why != 0)
        only_fails.take();
    return why;
}

/// A child of fork() does not have the memory: it would keep the locks of the descriptor, closed or not.
void* map(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept
{
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
    if (at == MAP_FAILED)
        return nullptr;
    ::madvise(at, bytes, MADV_DONTFORK);
    return at;
}

/// Removes the file of a wire if no member holds a slot of it. Under the lock for joining, so that nobody joins a file
/// that is being removed; who has that lock, or is about to take it for the first time, keeps the file.
void remove_if_left(const std::string& path) noexcept
{
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
    std::uint64_t magic = 0;
    struct stat own {
    }, named{};
    if (file >= 0 && ::fstat(file, &own) == 0 && S_ISREG(own.st_mode) && own.st_uid == ::geteuid() &&
        ::pread(file, &magic, sizeof magic, 0) == sizeof magic && magic == head::right_magic &&
        try_lock(file, join_byte) && !locked_by_others(file, first_slot, most_members) &&
        ::stat(path.c_str(), &named) == 0 && named.st_ino == own.st_ino && named.st_dev == own.st_dev)
        ::unlink(path.c_str());
    if (file >= 0)
        ::close(file);
}

/// Removes the wires in a folder that this user's killed processes have left. @param but  the one that is joined
void remove_left_wires(const std::string& folder, const std::string& but) noexcept
{
    const std::string begin = fmt::format("weftio-{}-", ::geteuid());
    const std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir(folder.c_str()), ::closedir);
    while (const dirent* each = all ? ::readdir(all.get()) : nullptr)
        if (std::string_view(each->d_name).starts_with(begin))
            if (const std::string path = folder + "/" + each->d_name; path != but)
                remove_if_left(path);
}

} // namespace

std::string path_of(std::string_view who, std::string_view name, const std::string& folder)
{
    auto fits = [](unsigned char letter) {
        return std::isalnum(letter) != 0 || letter == '.' || letter == '_' || letter == '-';
    };
    if (name.empty() || name.size() > longest_name)
        throw error(
            errc::invalid_argument,
            fmt::format("weftio: {}: a wire's name has 1 to {} characters, this one has {}; choose another name", who,
                        longest_name, name.size()));
    if (!std::ranges::all_of(name, fits))
        throw error(errc::invalid_argument,
                    fmt::format("weftio: {}: a wire's name may have only letters, digits and . _ -, because it is part "
                                "of a file name in {}; choose another name",
                                who, folder));
    return fmt::format("{}/weftio-{}-{}", folder, ::geteuid(), name);
}

wire_file::wire_file(std::string who, std::string_view name, const std::string& folder)
    : who_(std::move(who)), path_(path_of(who_, name, folder)), folder_(folder)
{
    remove_left_wires(folder_, path_);
    try {
        open();
        make_or_check();
        require_room();
        take_slot();
        leave_in_children();
        unlock();
    } catch (...) {
        leave();
        throw;
    }
}

wire_file::~wire_file()
{
    leave();
}

/// Opens the file and takes the lock for joining. The last member may have removed the file meanwhile, so the name is
/// compared once the lock is held.
void wire_file::open()
{
    for (;;) {
        descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
        if (descriptor_ < 0)
            fail_to_open(errno);
        try {
            require_own();
        } catch (...) {
            ::close(std::exchange(descriptor_, -1)); // leave() would take it for a wire of this user
            throw;
        }
        lock();
        if (is_the_named_one())
            return;
        ::close(std::exchange(descriptor_, -1));
    }
}

bool wire_file::is_the_named_one() const noexcept
{
    struct stat named {
    }, opened{};
    return ::fstat(descriptor_, &opened) == 0 && ::stat(path_.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
           named.st_dev == opened.st_dev;
}

void wire_file::require_own() const
{
    struct stat file {};
    if (::fstat(descriptor_, &file) != 0)
        fail(errno);
    if (file.st_uid != ::geteuid())
        throw error(errc::permission_denied, fmt::format("weftio: {}: {} belongs to user {}, but only processes of one "
                                                         "user share a wire (here: {}); choose another name",
                                                         who_, path_, file.st_uid, ::geteuid()));
    if (!S_ISREG(file.st_mode) || (file.st_mode & 0077) != 0)
        throw error(errc::permission_denied,
                    fmt::format("weftio: {}: {} is not a file that only its owner can open (mode {:o}); remove it",
                                who_, path_, file.st_mode));
}

void wire_file::fail_to_open(int why) const
{
    struct stat file {};
    if (why == ENOENT || why == ENOTDIR)
        throw error(
            errc::not_found,
            fmt::format(
                "weftio: {}: no folder {}, which holds the memory of wires; mount one with \"mount -t tmpfs tmpfs {}\"",
                who_, folder_, folder_));
    if (why == EACCES && ::lstat(path_.c_str(), &file) == 0 && file.st_uid != ::geteuid())
        throw error(errc::permission_denied, fmt::format("weftio: {}: {} belongs to user {}, but only processes of one "
                                                         "user share a wire (here: {}); choose another name",
                                                         who_, path_, file.st_uid, ::geteuid()));
    fail(why);
}

void wire_file::fail(int why) const
{
    if (why == EFBIG)
        throw error(errc::out_of_memory, fmt::format("weftio: {}: {} would exceed the file size limit of this process; "
                                                     "raise it with \"ulimit -f unlimited\"",
                                                     who_, path_));
    if (why == ENOSPC || why == EDQUOT || why == ENOMEM)
        fail_for_room(head_bytes, why);
    const errc code = why == EACCES || why == EPERM || why == EROFS ? errc::permission_denied : errc::device_error;
    throw error(code, fmt::format("weftio: {}: cannot use {}: {}; mount {} as a tmpfs that this user can write to",
                                  who_, path_, std::strerror(why), folder_));
}

/// Takes the lock for joining and leaving. Who holds it does little, so a long wait means a stopped process.
void wire_file::lock()
{
    using namespace std::chrono_literals;
    for (const auto end = std::chrono::steady_clock::now() + 2s; !try_lock(descriptor_, join_byte);) {
        if (errno != EAGAIN)
            fail(errno);
        if (std::chrono::steady_clock::now() > end)
            throw error(errc::in_use, fmt::format("weftio: {}: another process has been joining or leaving {} for 2 s; "
                                                  "resume or end that process (\"fuser {}\" shows it)",
                                                  who_, path_, path_));
        std::this_thread::sleep_for(1ms);
    }
}

void wire_file::unlock() noexcept
{
    release_lock(descriptor_, join_byte);
}

/// Checks the head of a wire that has members, else makes it anew: so nothing that ended processes have left counts.
void wire_file::make_or_check()
{
    if (!locked_by_others(descriptor_, first_slot, most_members))
        return make();
    struct stat file {};
    if (::fstat(descriptor_, &file) != 0)
        fail(errno);
    if (file.st_size < static_cast<off_t>(head_bytes))
        refuse_version(0);
    head_ = static_cast<head*>(map(descriptor_, 0, head_bytes));
    if (!head_)
        fail(errno);
    if (head_->magic.load(std::memory_order_acquire) != head::right_magic || head_->version != head::this_version ||
        head_->head_bytes != head_bytes || head_->members != most_members || head_->bytes_of_ring != ring_bytes)
        refuse_version(head_->version);
}

void wire_file::refuse_version(std::uint32_t theirs) const
{
    throw error(errc::not_supported, fmt::format("weftio: {}: processes on this wire use another version of Weftio "
                                                 "({}: version {}, here {}); end them, or choose another name",
                                                 who_, path_, theirs, head::this_version));
}

void wire_file::make()
{
    if (::ftruncate(descriptor_, 0) != 0)
        fail(errno);
    if (const int why = reserve_bytes(descriptor_, 0, head_bytes); why != 0)
        fail(why);
    head_ = static_cast<head*>(map(descriptor_, 0, head_bytes));
    if (!head_)
        fail(errno);
    head_->version = head::this_version;
    head_->head_bytes = head_bytes;
    head_->members = most_members;
    head_->bytes_of_ring = ring_bytes;
    head_->magic.store(head::right_magic, std::memory_order_release);
}

/// A member without room for a channel in each direction would join, and reach nobody.
void wire_file::require_room() const
{
    constexpr std::uint64_t needed = 2 * ring_bytes;
    struct statvfs folder {};
    const bool is_limited = ::fstatvfs(descriptor_, &folder) == 0 && folder.f_blocks != 0;
    if (is_limited && std::uint64_t{folder.f_bavail} * folder.f_frsize < needed)
        fail_for_room(needed, ENOSPC);
}

void wire_file::fail_for_room(std::uint64_t bytes, int why) const
{
    throw error(errc::out_of_memory,
                fmt::format("weftio: {}: {} has no space for {} KiB ({}); remove files there, or enlarge it (\"mount "
                            "-o remount,size=1G {}\", \"docker run --shm-size 1g\")",
                            who_, folder_, bytes / 1024, std::strerror(why), folder_));
}

/// Takes the first free slot. Frames that wait there for an earlier member are passed over.
void wire_file::take_slot()
{
    unsigned slot = 0;
    while (slot != most_members && !try_lock(descriptor_, first_slot + slot))
        ++slot;
    if (slot == most_members)
        throw error(errc::in_use,
                    fmt::format("weftio: {}: the wire has {} members, the maximum; end one, or choose another name",
                                who_, most_members));
    slot_ = slot;
    slot_state& state = head_->slots[slot];
    state.process.store(static_cast<std::uint32_t>(::getpid()), std::memory_order_relaxed);
    for (std::atomic<std::uint32_t>* each : {&state.first_queue, &state.queues})
        each->store(0, std::memory_order_relaxed);
    for (std::atomic<std::uint64_t>& each : state.address)
        each.store(0, std::memory_order_relaxed);
    state.news.exchange(0, std::memory_order_acq_rel);
    for (auto& from : head_->channels)
        from[slot].consumed.store(from[slot].produced.load(std::memory_order_acquire), std::memory_order_relaxed);
    const std::uint32_t before = state.life.load(std::memory_order_relaxed);
    state.life.store((before + 1) | 1, std::memory_order_release);
}

bool is_held(int descriptor, unsigned slot) noexcept
{
    return locked_by_others(descriptor, first_slot + static_cast<off_t>(slot), 1);
}

std::byte* wire_file::map_ring(unsigned sender, unsigned receiver) const noexcept
{
    struct stat file {};
    const std::uint64_t offset = ring_offset(sender, receiver);
    if (::fstat(descriptor_, &file) == 0 && static_cast<std::uint64_t>(file.st_size) >= offset + ring_bytes)
        return static_cast<std::byte*>(map(descriptor_, offset, ring_bytes));
    return nullptr;
}

std::byte* wire_file::make_ring(unsigned sender, unsigned receiver) const noexcept
{
    if (const int why = reserve_bytes(descriptor_, ring_offset(sender, receiver), ring_bytes); why != 0) {
        errno = why;
        return nullptr;
    }
    return map_ring(sender, receiver);
}

/// Once the process has ended, nobody else may hold its slot: members would take it for alive, and wait for it.
void wire_file::leave_in_children() noexcept
{
    static const int handled = ::pthread_atfork(nullptr, nullptr, &wire_file::leave_in_child);
    for (std::atomic<wire_file*>& each : of_this_process)
        if (wire_file* nobody = nullptr; handled == 0 && each.compare_exchange_strong(nobody, this))
            return;
}

void wire_file::leave_in_child() noexcept
{
    for (const std::atomic<wire_file*>& each : of_this_process)
        if (wire_file* const file = each.load())
            ::close(std::exchange(file->descriptor_, -1));
}

/// Gives the slot back under the lock, so that nobody joins a file that is being removed. Without the lock, because a
/// stopped process holds it, the file stays: the next first member makes it anew.
void wire_file::leave() noexcept
{
    if (descriptor_ < 0)
        return;
    for (std::atomic<wire_file*>& each : of_this_process)
        if (each.load() == this)
            each.store(nullptr);
    bool locked = false;
    try {
        lock();
        locked = true;
    } catch (const std::exception&) { // 2 s are over
    }
    if (slot_ != most_members)
        head_->slots[slot_].life.fetch_add(1, std::memory_order_release);
    if (locked && !locked_by_others(descriptor_, first_slot, most_members) && is_the_named_one())
        ::unlink(path_.c_str());
    if (slot_ != most_members)
        release_lock(descriptor_, first_slot + static_cast<off_t>(slot_));
    if (locked)
        unlock(); // others may have the descriptor still
    if (head_)
        ::munmap(head_, head_bytes);
    ::close(std::exchange(descriptor_, -1));
}

} // namespace weftio::wires
