// Functions that take a descriptor. For descriptors that are not nodes, they only test the number.
#include <cerrno>
#include <cstdarg>

#include <linux/close_range.h>
#include <linux/netlink.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../seam.hpp"
#include "host.hpp"
#include "nodes.hpp"
#include "real.hpp"
#include "refused.hpp"
#include "told.hpp"

using namespace weftio::verbs::preload;

namespace {

/// Whether the program's call is for a node.
bool is_node(int descriptor) noexcept
{
    return !passes() && node_of(descriptor) >= 0;
}

/// A node has been closed, perhaps its last descriptor.
void report_closed() noexcept
{
    const auto* const engine = engine_here();
    if (engine == nullptr || passes())
        return;
    const engine_scope scope;
    engine->closed();
}

/// Converts a result of the engine to that of the C library.
ssize_t with_errno(ssize_t result) noexcept
{
    if (result >= 0)
        return result;
    errno = static_cast<int>(-result);
    return -1;
}

/// Whether a node that the engine does not know was opened by a parent process.
bool is_parents(int descriptor) noexcept
{
    return has_inherited() && node_of(descriptor) >= 0;
}

/// Waits for a record of the engine as read() would, with the program's flags and signals. The thread may be cancelled
/// here. @return false, with errno
bool await_record(int descriptor)
{
    char record;
    const ssize_t got = recv(descriptor, &record, sizeof record, MSG_PEEK);
    while (got == 0) // the process is about to exit: the engine has ended, and there will be no event
        pause();
    return got > 0;
}

ssize_t write_node(int descriptor, const void* from, size_t bytes)
{
    const auto* const engine = engine_here();
    ssize_t result = -ENOTTY;
    do {
        if (result == -weftio::verbs::must_wait && !await_record(descriptor))
            return -1;
        if (engine != nullptr) {
            const engine_scope scope;
            result = engine->write(descriptor, from, bytes);
        }
    } while (result == -weftio::verbs::must_wait);
    if (result != -ENOTTY)
        return with_errno(result);
    if (!is_parents(descriptor))
        return real().write(descriptor, from, bytes);
    say_inherited();
    return with_errno(-EIO);
}

/// For a parent's node, ENOTTY makes libibverbs use write(), which fails with EIO.
int control_node(int descriptor, unsigned long request, void* argument) noexcept
{
    const auto* const engine = engine_here();
    int result = -ENOTTY;
    if (engine != nullptr) {
        const engine_scope scope;
        result = engine->control(descriptor, request, argument);
    }
    return static_cast<int>(with_errno(result));
}

/// Each part is one command, as in the kernel for devices that only implement write().
ssize_t write_parts(int descriptor, const iovec* parts, int count)
{
    if (count < 0 || count > 1024)
        return with_errno(-EINVAL);
    ssize_t total = 0;
    for (int i = 0; i < count; ++i) {
        const ssize_t written = write_node(descriptor, parts[i].iov_base, parts[i].iov_len);
        if (written < 0)
            return total > 0 ? total : written;
        total += written;
        if (static_cast<size_t>(written) < parts[i].iov_len)
            break;
    }
    return total;
}

using map_function = void* (*)(void*, size_t, int, int, int, off_t);

void* map_node(map_function real_map, void* wish, size_t bytes, int protection, int flags, int descriptor, off_t offset)
{
    if ((flags & MAP_ANONYMOUS) != 0 || !is_node(descriptor))
        return real_map(wish, bytes, protection, flags, descriptor, offset);
    const auto* const engine = engine_here();
    void* address = MAP_FAILED;
    int result = -ENOTTY;
    if (engine != nullptr) {
        const engine_scope scope;
        result = engine->map(descriptor, wish, bytes, protection, flags, offset, &address);
    }
    if (result == -ENOTTY && !is_parents(descriptor))
        return real_map(wish, bytes, protection, flags, descriptor, offset);
    if (result == -ENOTTY) {
        say_inherited();
        result = -EIO;
    }
    return with_errno(result) < 0 ? MAP_FAILED : address;
}

/// Calls `map()`. With MAP_FIXED it may take the place of other memory.
template <class Map>
void* map_told(Map map, void* wish, size_t bytes, int flags)
{
    return (flags & MAP_FIXED) != 0 ? told(map, SYS_mmap, wish, bytes, 0, flags) : map();
}

/// userfaultfd: pages belong to one descriptor. The program's comes before that of the engine.
int control_other(int descriptor, unsigned long request, void* argument) noexcept
{
    const auto call = [&] { return real().ioctl(descriptor, request, argument); };
    if (request != UFFDIO_REGISTER || argument == nullptr)
        return call();
    const uffdio_range& wanted = static_cast<const uffdio_register*>(argument)->range;
    return without_watching(call, EBUSY, wanted.start, wanted.len);
}

/// `from` has been duplicated. `result` is the new number, or -1. Duplicates made by the engine are not the program's.
int duplicated(int from, int result) noexcept
{
    if (result < 0 || passes() || borrows_memory() || copy_node(from, result))
        return result;
    const int error = errno;
    real().close(result);
    errno = error;
    return -1;
}

/// dup2() and dup3(): `call()` calls the C library.
template <class Call>
int duplicate_to(int from, int to, Call call) noexcept
{
    if ((!may_be_node(from) && !may_be_node(to)) || from == to)
        return call();
    const bool closes_node = is_node(to);
    const int result = duplicated(from, call());
    if (result >= 0 && closes_node)
        report_closed();
    return result;
}

/// close_range() and closefrom(): `call()` calls the C library.
template <class Call>
auto close_all(unsigned first, unsigned last, Call call) noexcept
{
    if (borrows_memory() || passes() || !has_nodes(first, last))
        return call();
    struct end {
        unsigned first, last;
        ~end()
        {
            forget_closed_nodes(first, last);
            report_closed();
        }
    } const afterwards{first, last};
    return call();
}

bool duplicates(int command) noexcept
{
    return command == F_DUPFD || command == F_DUPFD_CLOEXEC;
}

} // namespace

WEFTIO_INTERCEPT(int, dup, int descriptor)
{
    const int result = real().dup(descriptor);
    return may_be_node(descriptor) ? duplicated(descriptor, result) : result;
}
WEFTIO_INTERCEPT(int, dup2, int from, int to)
{
    return duplicate_to(from, to, [&] { return real().dup2(from, to); });
}
WEFTIO_INTERCEPT(int, dup3, int from, int to, int flags)
{
    return duplicate_to(from, to, [&] { return real().dup3(from, to, flags); });
}

#define WEFTIO_INTERCEPT_FCNTL(name)                                                                                   \
    WEFTIO_INTERCEPT(int, name, int descriptor, int command, ...)                                                      \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, command);                                                                                  \
        void* const argument = va_arg(arguments, void*);                                                               \
        va_end(arguments);                                                                                             \
        const int result = real().name(descriptor, command, argument);                                                 \
        return may_be_node(descriptor) && duplicates(command) ? duplicated(descriptor, result) : result;               \
    }
WEFTIO_INTERCEPT_FCNTL(fcntl)
WEFTIO_INTERCEPT_FCNTL(fcntl64)

WEFTIO_INTERCEPT(ssize_t, write, int descriptor, const void* from, size_t bytes)
{
    if (may_be_node(descriptor) && is_node(descriptor))
        return write_node(descriptor, from, bytes);
    return real().write(descriptor, from, bytes);
}
WEFTIO_INTERCEPT(ssize_t, writev, int descriptor, const iovec* parts, int count)
{
    if (may_be_node(descriptor) && is_node(descriptor))
        return write_parts(descriptor, parts, count);
    return real().writev(descriptor, parts, count);
}

WEFTIO_INTERCEPT(int, ioctl, int descriptor, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    if (may_be_node(descriptor) && is_node(descriptor))
        return control_node(descriptor, request, argument);
    return control_other(descriptor, request, argument);
}

// Two functions for each name. UCX overwrites the code of the mmap() that dlsym() finds with a jump to its own
// function, which calls the kernel. Calls bound by the dynamic linker therefore go to a second function, which has the
// C library's version. It handles nodes first, and passes other calls to the one that may be overwritten.
#define WEFTIO_INTERCEPT_MMAP(name)                                                                                    \
    WEFTIO_INTERCEPT_VERSION(void*, name, found, "@@WEFTIO", void* wish, size_t bytes, int protection, int flags,      \
                             int descriptor, off_t offset)                                                             \
    {                                                                                                                  \
        return map_told(                                                                                               \
            [&] {                                                                                                      \
                if (may_be_node(descriptor))                                                                           \
                    return map_node(real().name, wish, bytes, protection, flags, descriptor, offset);                  \
                return real().name(wish, bytes, protection, flags, descriptor, offset);                                \
            },                                                                                                         \
            wish, bytes, flags);                                                                                       \
    }                                                                                                                  \
    WEFTIO_INTERCEPT_VERSION(void*, name, bound, "@" WEFTIO_LIBC_VERSION, void* wish, size_t bytes, int protection,    \
                             int flags, int descriptor, off_t offset)                                                  \
    {                                                                                                                  \
        return map_told(                                                                                               \
            [&] {                                                                                                      \
                if (may_be_node(descriptor))                                                                           \
                    return map_node(name##_found, wish, bytes, protection, flags, descriptor, offset);                 \
                return name##_found(wish, bytes, protection, flags, descriptor, offset);                               \
            },                                                                                                         \
            wish, bytes, flags);                                                                                       \
    }
WEFTIO_INTERCEPT_MMAP(mmap)
WEFTIO_INTERCEPT_MMAP(mmap64)

WEFTIO_INTERCEPT(int, close, int descriptor)
{
    if (!may_be_node(descriptor) || borrows_memory())
        return real().close(descriptor);
    const bool closes_node = is_node(descriptor);
    forget_node(descriptor); // before another thread can get the number
    const int result = real().close(descriptor);
    if (closes_node)
        report_closed();
    return result;
}
WEFTIO_INTERCEPT(int, close_range, unsigned first, unsigned last, int flags)
{
    const auto call = [&] { return real().close_range(first, last, flags); };
    return (static_cast<unsigned>(flags) & CLOSE_RANGE_CLOEXEC) != 0 ? call() : close_all(first, last, call);
}
WEFTIO_INTERCEPT(void, closefrom, int first)
{
    close_all(first < 0 ? 0 : static_cast<unsigned>(first), ~0u, [&] { real().closefrom(first); });
}

// Hides the host's devices from the program. libibverbs tries this first, and then reads /sys.
WEFTIO_INTERCEPT(int, socket, int family, int type, int protocol)
{
    if (family == AF_NETLINK && protocol == NETLINK_RDMA && !passes()) {
        report_refused_netlink();
        return static_cast<int>(with_errno(-EPROTONOSUPPORT));
    }
    return real().socket(family, type, protocol);
}
