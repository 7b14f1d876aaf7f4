// Functions by which programs read a file again that they have open.
#include "counters.hpp"

#include <cerrno>

#include <sys/stat.h>
#include <unistd.h>

#include "host.hpp"
#include "real.hpp"

namespace weftio::verbs::preload {

constinit std::atomic<bool> reads_counters{false};

void refresh_counters() noexcept
{
    const auto* const engine = engine_here();
    if (engine == nullptr || borrows_memory())
        return;
    reads_counters.store(true, std::memory_order_relaxed);
    const engine_scope scope;
    engine->count();
}

/// The tree's file system may have other files.
void refresh_if_in_tree(int descriptor) noexcept
{
    const int error = errno;
    const char* const tree = passes() ? nullptr : tree_so_far();
    struct stat file, folder;
    if (tree != nullptr && real().fstat(descriptor, &file) == 0 && S_ISREG(file.st_mode) &&
        real().stat(tree, &folder) == 0 && file.st_dev == folder.st_dev)
        refresh_counters();
    errno = error;
}

} // namespace weftio::verbs::preload

using namespace weftio::verbs::preload;

#define WEFTIO_INTERCEPT_SEEK(name, offset_type)                                                                       \
    WEFTIO_INTERCEPT(offset_type, name, int descriptor, offset_type offset, int from)                                  \
    {                                                                                                                  \
        refresh_if_counter(descriptor);                                                                                \
        return real().name(descriptor, offset, from);                                                                  \
    }
WEFTIO_INTERCEPT_SEEK(lseek, off_t)
WEFTIO_INTERCEPT_SEEK(lseek64, off64_t)

#define WEFTIO_INTERCEPT_PREAD(name, offset_type)                                                                      \
    WEFTIO_INTERCEPT(ssize_t, name, int descriptor, void* to, size_t bytes, offset_type offset)                        \
    {                                                                                                                  \
        refresh_if_counter(descriptor);                                                                                \
        return real().name(descriptor, to, bytes, offset);                                                             \
    }
WEFTIO_INTERCEPT_PREAD(pread, off_t)
WEFTIO_INTERCEPT_PREAD(pread64, off64_t)

#define WEFTIO_INTERCEPT_PREAD_CHK(name, offset_type)                                                                  \
    WEFTIO_INTERCEPT(ssize_t, name, int descriptor, void* to, size_t bytes, offset_type offset, size_t there)          \
    {                                                                                                                  \
        refresh_if_counter(descriptor);                                                                                \
        return real().name(descriptor, to, bytes, offset, there);                                                      \
    }
WEFTIO_INTERCEPT_PREAD_CHK(__pread_chk, off_t)
WEFTIO_INTERCEPT_PREAD_CHK(__pread64_chk, off64_t)
