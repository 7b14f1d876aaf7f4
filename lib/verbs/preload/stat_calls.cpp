// Functions that return attributes of a path or a descriptor.
#include <cerrno>
#include <cstring>

#include <sys/sysmacros.h>
#include <unistd.h>

#include "host.hpp"
#include "nodes.hpp"
#include "real.hpp"
#include "target_path.hpp"

using namespace weftio::verbs;
using namespace weftio::verbs::preload;

namespace {

constexpr mode_t node_mode = S_IFCHR | 0666;

unsigned major_of(unsigned device) noexcept
{
    return device == connection_manager_node ? misc_major : node_major;
}
unsigned minor_of(unsigned device) noexcept
{
    return device == connection_manager_node ? connection_manager_minor : first_node_minor + device;
}

template <class Stat>
void make_node(Stat& file, unsigned device) noexcept
{
    file.st_mode = node_mode;
    file.st_rdev = makedev(major_of(device), minor_of(device));
}
void make_node(struct statx& file, unsigned device) noexcept
{
    file.stx_mode = node_mode;
    file.stx_rdev_major = major_of(device);
    file.stx_rdev_minor = minor_of(device);
}

/// stat() and similar functions: `call(path, file)` calls the C library.
template <class Stat, class Call>
int stat_at(int folder, const char* path, Stat* file, Call call) noexcept
{
    if (is_hidden(path)) {
        errno = ENOENT;
        return -1;
    }
    return with_target(folder, path, [&](const target_path& at) {
        const int result = call(at.path(), file);
        if (result == 0 && at.is_node())
            make_node(*file, at.device());
        return result;
    });
}

/// A node has the inode that stat() of its path returns.
template <class Stat, class Call, class PathCall>
[[gnu::noinline]] int stat_node(int descriptor, unsigned device, Stat* file, Call call, PathCall path_call) noexcept
{
    const int error = errno;
    if (path_call(node_file(device).path(), file) != 0) { // the tree has been removed
        errno = error;
        if (const int result = call(descriptor, file); result != 0)
            return result;
    }
    make_node(*file, device);
    return 0;
}

/// fstat() and similar functions: `call(descriptor, file)` and `path_call(path, file)` call the C library.
template <class Stat, class Call, class PathCall>
int stat_descriptor(int descriptor, Stat* file, Call call, PathCall path_call) noexcept
{
    const int device = may_be_node(descriptor) && !passes() ? node_of(descriptor) : -1;
    return device < 0 ? call(descriptor, file)
                      : stat_node(descriptor, static_cast<unsigned>(device), file, call, path_call);
}

/// Whether fstatat() is for the descriptor itself.
bool is_itself(int descriptor, const char* path, int flags) noexcept
{
    return (flags & AT_EMPTY_PATH) != 0 && may_be_node(descriptor) && (path == nullptr || path[0] == 0);
}

} // namespace

#define WEFTIO_INTERCEPT_STAT(name, type)                                                                              \
    WEFTIO_INTERCEPT(int, name, const char* path, struct type* file)                                                   \
    {                                                                                                                  \
        return stat_at(AT_FDCWD, path, file, real().name);                                                             \
    }
WEFTIO_INTERCEPT_STAT(stat, stat)
WEFTIO_INTERCEPT_STAT(stat64, stat64)
WEFTIO_INTERCEPT_STAT(lstat, stat)
WEFTIO_INTERCEPT_STAT(lstat64, stat64)

// Called by programs that were linked before glibc 2.33.
#define WEFTIO_INTERCEPT_XSTAT(name, type)                                                                             \
    WEFTIO_INTERCEPT(int, name, int version, const char* path, struct type* file)                                      \
    {                                                                                                                  \
        const auto call = [&](const char* to, struct type* into) { return real().name(version, to, into); };           \
        return stat_at(AT_FDCWD, path, file, call);                                                                    \
    }
WEFTIO_INTERCEPT_XSTAT(__xstat, stat)
WEFTIO_INTERCEPT_XSTAT(__xstat64, stat64)
WEFTIO_INTERCEPT_XSTAT(__lxstat, stat)
WEFTIO_INTERCEPT_XSTAT(__lxstat64, stat64)

WEFTIO_INTERCEPT(int, fstat, int descriptor, struct stat* file)
{
    return stat_descriptor(descriptor, file, real().fstat, real().stat);
}
WEFTIO_INTERCEPT(int, fstat64, int descriptor, struct stat64* file)
{
    return stat_descriptor(descriptor, file, real().fstat64, real().stat64);
}

#define WEFTIO_INTERCEPT_FXSTAT(name, by_path, type)                                                                   \
    WEFTIO_INTERCEPT(int, name, int version, int descriptor, struct type* file)                                        \
    {                                                                                                                  \
        const auto call = [&](int of, struct type* into) { return real().name(version, of, into); };                   \
        const auto path_call = [&](const char* to, struct type* into) { return real().by_path(version, to, into); };   \
        return stat_descriptor(descriptor, file, call, path_call);                                                     \
    }
WEFTIO_INTERCEPT_FXSTAT(__fxstat, __xstat, stat)
WEFTIO_INTERCEPT_FXSTAT(__fxstat64, __xstat64, stat64)

#define WEFTIO_INTERCEPT_FSTATAT(name, of_descriptor, of_path, type)                                                   \
    WEFTIO_INTERCEPT(int, name, int folder, const char* path, struct type* file, int flags)                            \
    {                                                                                                                  \
        if (is_itself(folder, path, flags))                                                                            \
            return stat_descriptor(folder, file, real().of_descriptor, real().of_path);                                \
        const auto call = [&](const char* to, struct type* into) { return real().name(folder, to, into, flags); };     \
        return stat_at(folder, path, file, call);                                                                      \
    }
WEFTIO_INTERCEPT_FSTATAT(fstatat, fstat, stat, stat)
WEFTIO_INTERCEPT_FSTATAT(fstatat64, fstat64, stat64, stat64)

#define WEFTIO_INTERCEPT_FXSTATAT(name, type)                                                                          \
    WEFTIO_INTERCEPT(int, name, int version, int folder, const char* path, struct type* file, int flags)               \
    {                                                                                                                  \
        const auto call = [&](const char* to, struct type* into) {                                                     \
            return real().name(version, folder, to, into, flags);                                                      \
        };                                                                                                             \
        return stat_at(folder, path, file, call);                                                                      \
    }
WEFTIO_INTERCEPT_FXSTATAT(__fxstatat, stat)
WEFTIO_INTERCEPT_FXSTATAT(__fxstatat64, stat64)

WEFTIO_INTERCEPT(int, statx, int folder, const char* path, int flags, unsigned mask, struct statx* file)
{
    if (is_itself(folder, path, flags)) {
        const auto of_descriptor = [&](int, struct statx* into) {
            return real().statx(folder, path, flags, mask, into);
        };
        const auto of_path = [&](const char* to, struct statx* into) {
            return real().statx(AT_FDCWD, to, 0, mask, into);
        };
        return stat_descriptor(folder, file, of_descriptor, of_path);
    }
    const auto call = [&](const char* to, struct statx* into) { return real().statx(folder, to, flags, mask, into); };
    return stat_at(folder, path, file, call);
}

// The file of a node in the tree has the node's permissions.
WEFTIO_INTERCEPT(int, access, const char* path, int mode)
{
    return with_path(path, [&](const char* at) { return real().access(at, mode); });
}
WEFTIO_INTERCEPT(int, euidaccess, const char* path, int mode)
{
    return with_path(path, [&](const char* at) { return real().euidaccess(at, mode); });
}
WEFTIO_INTERCEPT(int, eaccess, const char* path, int mode)
{
    return with_path(path, [&](const char* at) { return real().eaccess(at, mode); });
}
WEFTIO_INTERCEPT(int, faccessat, int folder, const char* path, int mode, int flags)
{
    return with_path(folder, path, [&](const char* at) { return real().faccessat(folder, at, mode, flags); });
}

// Used by `ls -l`.
WEFTIO_INTERCEPT(ssize_t, getxattr, const char* path, const char* name, void* value, size_t bytes)
{
    return with_path(path, [&](const char* at) { return real().getxattr(at, name, value, bytes); });
}
WEFTIO_INTERCEPT(ssize_t, lgetxattr, const char* path, const char* name, void* value, size_t bytes)
{
    return with_path(path, [&](const char* at) { return real().lgetxattr(at, name, value, bytes); });
}
WEFTIO_INTERCEPT(ssize_t, listxattr, const char* path, char* names, size_t bytes)
{
    return with_path(path, [&](const char* at) { return real().listxattr(at, names, bytes); });
}
WEFTIO_INTERCEPT(ssize_t, llistxattr, const char* path, char* names, size_t bytes)
{
    return with_path(path, [&](const char* at) { return real().llistxattr(at, names, bytes); });
}
