#include "stale_calls.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

namespace weftio::verbs {

namespace {

constexpr int most_looked_at = 512; ///< threads

/// Appends a decimal number.
char* put_number(char* to, unsigned number) noexcept
{
    char digits[12];
    unsigned count = 0;
    do
        digits[count++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    while (count != 0)
        *to++ = digits[--count];
    return to;
}

/// Reads the beginning of a file, and ends it with 0. @return bytes
template <std::size_t Size>
std::size_t read_file(int folder, const char* path, char (&to)[Size]) noexcept
{
    const int file = openat(folder, path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, to, Size - 1);
    if (file >= 0)
        close(file);
    to[got > 0 ? got : 0] = 0;
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
}

/// "TID/file", below /proc/self/task.
struct thread_path {
    thread_path(int thread, const char* file) noexcept
    {
        char* const behind = put_number(text, static_cast<unsigned>(thread));
        *behind = '/';
        std::strncpy(behind + 1, file, 12);
    }
    char text[32]{};
};

bool changes_mappings(const stale_call& call) noexcept
{
    switch (call.number) {
        case SYS_munmap:
        case SYS_mremap:
        case SYS_madvise:
        case SYS_process_madvise:
        case SYS_brk:
        case SYS_shmdt: return true;
        case SYS_mmap: return (call.arguments[3] & MAP_FIXED) != 0;
        case SYS_shmat: return (call.arguments[2] & SHM_REMAP) != 0;
        default: return false;
    }
}

} // namespace

stale_mapping find_mapping(std::uintptr_t address) noexcept
{
    char text[4097];
    const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    std::size_t kept = 0;
    stale_mapping found;
    for (ssize_t got = 0; maps >= 0 && (got = read(maps, text + kept, sizeof text - 1 - kept)) > 0;) {
        text[kept += static_cast<std::size_t>(got)] = 0;
        char* line = text;
        for (char* end; (end = std::strchr(line, '\n')) != nullptr; line = end + 1) {
            char* at = nullptr;
            const std::uintptr_t first = std::strtoull(line, &at, 16), behind = std::strtoull(at + 1, &at, 16);
            if (first <= address && address < behind)
                found = {{first, behind}, at[4] == 's'}; // " rw-s"
        }
        kept -= static_cast<std::size_t>(line - text);
        std::memmove(text, line, kept);
    }
    if (maps >= 0)
        close(maps);
    return found;
}

std::uint64_t stale_now_ns() noexcept
{
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void read_thread_name(int thread, char (&name)[16]) noexcept
{
    char path[48] = "/proc/self/task/";
    std::strcpy(path + std::strlen(path), thread_path(thread, "comm").text);
    char text[17];
    const std::size_t bytes = read_file(AT_FDCWD, path, text);
    if (bytes != 0 && text[bytes - 1] == '\n')
        text[bytes - 1] = 0;
    std::memcpy(name, text, 15);
    name[15] = 0;
}

registrations::range stale_call::bytes() const noexcept
{
    constexpr std::uint64_t page = 4096;
    const std::uint64_t begin = arguments[0] & ~(page - 1);
    if (number == SYS_brk)
        return {begin, UINTPTR_MAX};
    if (number == SYS_shmdt || number == SYS_shmat || number == SYS_process_madvise)
        return {begin, begin + page}; // of unknown size
    const std::uint64_t end = (arguments[0] + arguments[1] + page - 1) & ~(page - 1);
    if (number == SYS_mremap && arguments[2] < arguments[1] && (arguments[3] & MREMAP_FIXED) == 0) // shrinks
        return {(arguments[0] + arguments[2] + page - 1) & ~(page - 1), end};
    return {begin, end};
}

bool stale_call::says_bytes() const noexcept
{
    return number == SYS_munmap || number == SYS_mmap || number == SYS_mremap || number == SYS_madvise;
}

registrations::range stale_call::also() const noexcept
{
    if (number != SYS_mremap || (arguments[3] & MREMAP_FIXED) == 0)
        return {};
    return {arguments[4], arguments[4] + arguments[2]};
}

/// MADV_FREE leaves pages that are pinned. MADV_DONTNEED of a shared mapping leaves the pages in the file.
bool stale_call::drops() const noexcept
{
    if (number != SYS_madvise)
        return true;
    if (arguments[2] == MADV_FREE)
        return false;
    return arguments[2] == MADV_REMOVE || !find_mapping(arguments[0]).shared;
}

void stale_calls::begin(bool with_stacks) noexcept
{
    with_stacks_ = with_stacks;
    threads_ = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void stale_calls::look() noexcept
{
    first_ = next_;
    const auto self = static_cast<int>(gettid());
    alignas(dirent64) char entries[4096];
    lseek(threads_, 0, SEEK_SET);
    int looked = 0;
    for (long got = 0; (got = syscall(SYS_getdents64, threads_, entries, sizeof entries)) > 0;)
        for (const char* at = entries; at < entries + got; at += reinterpret_cast<const dirent64*>(at)->d_reclen) {
            const int thread = std::atoi(reinterpret_cast<const dirent64*>(at)->d_name);
            if (thread > 0 && thread != self && ++looked <= most_looked_at)
                look_at(thread);
        }
}

/// The file has "NUMBER 0xARGUMENT (six) 0xSTACK 0xINSTRUCTION", or "running".
void stale_calls::look_at(int thread) noexcept
{
    char text[256];
    if (read_file(threads_, thread_path(thread, "syscall").text, text) == 0 || text[0] < '0' || text[0] > '9')
        return;
    stale_call seen;
    char* at = text;
    seen.thread = thread;
    seen.number = std::strtol(at, &at, 10);
    for (std::uint64_t& each : seen.arguments)
        each = std::strtoull(at, &at, 16);
    const std::uint64_t stack_pointer = std::strtoull(at, &at, 16);
    if (changes_mappings(seen) && next_ - first_ < kept_.size())
        keep(seen, stack_pointer);
}

void stale_calls::keep(const stale_call& seen, std::uint64_t stack_pointer) noexcept
{
    kept& to = kept_[next_ % kept_.size()];
    to.number.store(0);
    to.call = seen;
    to.call.when_ns = stale_now_ns();
    read_thread_name(seen.thread, to.call.name);
    if (with_stacks_) { // the thread waits, and its stack stays as it is
        iovec into{to.call.stack.data(), sizeof to.call.stack};
        iovec from{reinterpret_cast<void*>(stack_pointer), sizeof to.call.stack};
        const ssize_t got = process_vm_readv(getpid(), &into, 1, &from, 1, 0);
        to.call.words = got > 0 ? static_cast<unsigned>(static_cast<std::size_t>(got) / sizeof(std::uint64_t)) : 0;
    }
    to.number.store(next_);
    next_ = next_ == is_own - 1 ? 1 : next_ + 1;
}

std::uint32_t stale_calls::keep_own(const stale_call& call) noexcept
{
    const std::uint32_t number = next_own_.fetch_add(1) | is_own;
    kept& to = own_[number % own_.size()];
    to.number.store(0);
    to.call = call;
    to.number.store(number);
    return number;
}

std::uint32_t stale_calls::naming(const registrations::range& bytes) const noexcept
{
    std::uint32_t found = 0;
    for_each([&](std::uint32_t number, const stale_call& call) {
        if (call.bytes().overlaps(bytes) || call.also().overlaps(bytes))
            found = number;
    });
    return found;
}

stale_call stale_calls::find(std::uint32_t number) const noexcept
{
    const kept& at = (number & is_own) != 0 ? own_[number % own_.size()] : kept_[number % kept_.size()];
    if (number == 0 || at.number.load() != number)
        return {};
    const stale_call copy = at.call;
    std::atomic_thread_fence(std::memory_order_acquire);
    return at.number.load() == number ? copy : stale_call{};
}

} // namespace weftio::verbs
