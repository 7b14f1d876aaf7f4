// Fake system calls about files, interfaces and rights while a port spec is parsed; the fuzzer's input decides the
// results. Nothing outside the fuzzer is opened, created or written. The linker replaces the functions of the C library
// by these (--wrap).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weftio::fuzz {

/// While an object exists, the system calls are faked. One thread.
class fake_system {
 public:
    /// @param answers  bits: a file exists, is regular, is writable; an interface exists; raw sockets are permitted;
    ///                 /dev/net/tun exists
    /// @param file     content of every file
    fake_system(std::uint8_t answers, const std::uint8_t* file, std::size_t bytes)
        : answers_(answers), file_(file), bytes_(bytes)
    {
        playing = this;
    }
    fake_system(const fake_system&) = delete;
    fake_system& operator=(const fake_system&) = delete;
    ~fake_system() { playing = nullptr; }

    std::FILE* open(const char* mode) const
    {
        if (!yes(mode[0] == 'r' ? there : writable)) {
            errno = bytes_ % 2 ? EACCES : ENOENT;
            return nullptr;
        }
        return mode[0] == 'r' && bytes_ != 0 ? fmemopen(const_cast<std::uint8_t*>(file_), bytes_, "r")
                                             : real_open("/dev/null", mode);
    }
    /// A file that is to be written, or made.
    int open_to_write(int flags) const
    {
        return yes(writable) ? real_open("/dev/null", flags & ~(O_CREAT | O_EXCL | O_TRUNC)) : refused();
    }
    int status(struct stat* to) const
    {
        *to = {};
        to->st_mode = yes(regular) ? S_IFREG : bytes_ % 2 ? S_IFDIR : S_IFIFO;
        to->st_size = static_cast<off_t>(bytes_);
        return yes(there) ? 0 : refused();
    }
    unsigned interface_index() const { return yes(interface) ? 1 : 0; }
    int raw_socket() const { return yes(raw) ? real_open("/dev/null", O_RDONLY | O_CLOEXEC) : refused(); }
    int tap_access() const { return yes(tun) ? 0 : refused(); }

    static inline const fake_system* playing = nullptr;

 private:
    enum answer : std::uint8_t { there = 1, regular = 2, writable = 4, interface = 8, raw = 16, tun = 32 };

    static std::FILE* real_open(const char* path, const char* mode);
    static int real_open(const char* path, int flags);
    bool yes(answer which) const { return (answers_ & which) != 0; }
    int refused() const
    {
        errno = bytes_ % 2 ? EACCES : ENOENT;
        return -1;
    }

    std::uint8_t answers_;
    const std::uint8_t* file_;
    std::size_t bytes_;
};

} // namespace weftio::fuzz

// NOLINTBEGIN(bugprone-reserved-identifier): names that the linker defines
extern "C" {
std::FILE* __real_fopen(const char*, const char*);
int __real_open(const char*, int, ...);
int __real_stat(const char*, struct stat*);
unsigned __real_if_nametoindex(const char*);
int __real_socket(int, int, int);
int __real_access(const char*, int);

std::FILE* __wrap_fopen(const char* path, const char* mode)
{
    auto* system = weftio::fuzz::fake_system::playing;
    return system ? system->open(mode) : __real_fopen(path, mode);
}
int __wrap_open(const char* path, int flags, mode_t mode) // as callers see it, who pass the mode or nothing
{
    auto* system = weftio::fuzz::fake_system::playing;
    return system && flags & O_ACCMODE ? system->open_to_write(flags) : __real_open(path, flags, mode);
}
int __wrap_stat(const char* path, struct stat* to)
{
    auto* system = weftio::fuzz::fake_system::playing;
    return system ? system->status(to) : __real_stat(path, to);
}
unsigned __wrap_if_nametoindex(const char* name)
{
    auto* system = weftio::fuzz::fake_system::playing;
    return system ? system->interface_index() : __real_if_nametoindex(name);
}
int __wrap_socket(int domain, int type, int protocol)
{
    auto* system = weftio::fuzz::fake_system::playing;
    return system ? system->raw_socket() : __real_socket(domain, type, protocol);
}
int __wrap_access(const char* path, int mode)
{
    auto* system = weftio::fuzz::fake_system::playing;
    return system ? system->tap_access() : __real_access(path, mode);
}
}
// NOLINTEND(bugprone-reserved-identifier)

inline std::FILE* weftio::fuzz::fake_system::real_open(const char* path, const char* mode)
{
    return __real_fopen(path, mode);
}
inline int weftio::fuzz::fake_system::real_open(const char* path, int flags)
{
    return __real_open(path, flags);
}
