// Functions that open a path.
#include <cerrno>
#include <cstdarg>

#include <unistd.h>

#include "host.hpp"
#include "nodes.hpp"
#include "real.hpp"
#include "refused.hpp"
#include "target_path.hpp"

using namespace weftio::verbs::preload;

namespace {

int fail(int error) noexcept
{
    errno = error;
    return -1;
}

/// What the kernel refuses before it calls a driver.
int reason_against(int flags) noexcept
{
    if ((flags & O_DIRECTORY) != 0)
        return ENOTDIR;
    return (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL) ? EEXIST : 0;
}

int open_node(unsigned device, int flags) noexcept
{
    if (const int error = reason_against(flags); error != 0)
        return fail(error);
    const auto* const engine = engine_here();
    if (engine == nullptr)
        return fail(EIO); // a child of vfork()
    int descriptor;
    {
        const engine_scope scope;
        descriptor = engine->open(device, flags);
    }
    if (descriptor < 0)
        return fail(-descriptor);
    if (remember_node(descriptor, device))
        return descriptor;
    const int error = errno;
    real().close(descriptor);
    return fail(error);
}

/// A file could not be opened. Keeps errno.
void report_missing(const target_path& at) noexcept
{
    if (errno == ENOENT && at.neighbor() != nullptr)
        report_refused_file(at.neighbor());
}

/// open() and similar functions: `call(path)` calls the C library.
template <class Call>
int open_at(int folder, const char* path, int flags, Call call) noexcept(false)
{
    return with_target(folder, path, [&](const target_path& at) {
        if (at.is_node())
            return open_node(at.device(), flags);
        const int result = call(at.path());
        if (result < 0)
            report_missing(at);
        return result;
    });
}

int flags_of(const char* mode) noexcept
{
    int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    for (; *mode != 0 && *mode != ','; ++mode) {
        if (*mode == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        else if (*mode == 'e')
            flags |= O_CLOEXEC;
    }
    return flags;
}

/// A stream for a node. Its writes bypass this library and have no effect.
template <class Call>
FILE* open_stream(const char* path, const char* mode, Call call)
{
    return with_target(AT_FDCWD, path, [&](const target_path& at) -> FILE* {
        if (!at.is_node()) {
            FILE* const opened = call(at.path(), mode);
            if (opened == nullptr)
                report_missing(at);
            return opened;
        }
        const int descriptor = open_node(at.device(), flags_of(mode));
        return descriptor < 0 ? nullptr : fdopen(descriptor, mode);
    });
}

/// The mode argument of open(), which is only present with some flags.
mode_t mode_in(va_list arguments, int flags) noexcept
{
    const bool there = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return there ? va_arg(arguments, mode_t) : 0;
}

} // namespace

#define WEFTIO_INTERCEPT_OPEN(name)                                                                                    \
    WEFTIO_INTERCEPT(int, name, const char* path, int flags, ...)                                                      \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        const mode_t mode = mode_in(arguments, flags);                                                                 \
        va_end(arguments);                                                                                             \
        return open_at(AT_FDCWD, path, flags, [&](const char* to) { return real().name(to, flags, mode); });           \
    }
WEFTIO_INTERCEPT_OPEN(open)
WEFTIO_INTERCEPT_OPEN(open64)

#define WEFTIO_INTERCEPT_OPENAT(name)                                                                                  \
    WEFTIO_INTERCEPT(int, name, int folder, const char* path, int flags, ...)                                          \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        const mode_t mode = mode_in(arguments, flags);                                                                 \
        va_end(arguments);                                                                                             \
        return open_at(folder, path, flags, [&](const char* to) { return real().name(folder, to, flags, mode); });     \
    }
WEFTIO_INTERCEPT_OPENAT(openat)
WEFTIO_INTERCEPT_OPENAT(openat64)

#define WEFTIO_INTERCEPT_OPEN_2(name)                                                                                  \
    WEFTIO_INTERCEPT(int, name, const char* path, int flags)                                                           \
    {                                                                                                                  \
        return open_at(AT_FDCWD, path, flags, [&](const char* to) { return real().name(to, flags); });                 \
    }
WEFTIO_INTERCEPT_OPEN_2(__open_2)
WEFTIO_INTERCEPT_OPEN_2(__open64_2)

#define WEFTIO_INTERCEPT_OPENAT_2(name)                                                                                \
    WEFTIO_INTERCEPT(int, name, int folder, const char* path, int flags)                                               \
    {                                                                                                                  \
        return open_at(folder, path, flags, [&](const char* to) { return real().name(folder, to, flags); });           \
    }
WEFTIO_INTERCEPT_OPENAT_2(__openat_2)
WEFTIO_INTERCEPT_OPENAT_2(__openat64_2)

WEFTIO_INTERCEPT(FILE*, fopen, const char* path, const char* mode)
{
    return open_stream(path, mode, real().fopen);
}
WEFTIO_INTERCEPT(FILE*, fopen64, const char* path, const char* mode)
{
    return open_stream(path, mode, real().fopen64);
}

WEFTIO_INTERCEPT(DIR*, opendir, const char* path)
{
    return with_path(path, [&](const char* at) { return real().opendir(at); });
}

WEFTIO_INTERCEPT(int, scandir, const char* path, dirent*** names, int (*wanted)(const dirent*),
                 int (*compare)(const dirent**, const dirent**))
{
    return with_path(path, [&](const char* at) { return real().scandir(at, names, wanted, compare); });
}
WEFTIO_INTERCEPT(int, scandir64, const char* path, dirent64*** names, int (*wanted)(const dirent64*),
                 int (*compare)(const dirent64**, const dirent64**))
{
    return with_path(path, [&](const char* at) { return real().scandir64(at, names, wanted, compare); });
}

WEFTIO_INTERCEPT(int, chdir, const char* path)
{
    return with_path(path, [&](const char* at) { return real().chdir(at); });
}
