// Functions that change mappings. They are told to the engine; the C library's own calls of them do not come here.
#include <cerrno>
#include <cstdarg>

#include <sys/syscall.h>

#include "host.hpp"
#include "real.hpp"
#include "told.hpp"

using namespace weftio::verbs::preload;

namespace {

using unmap_function = int(void*, size_t);
using remap_function = void*(void*, size_t, size_t, int, ...);
using advise_function = int(void*, size_t, int);
using detach_function = int(const void*);

int unmap(unmap_function* by, void* at, size_t bytes)
{
    return told([&] { return by(at, bytes); }, SYS_munmap, at, bytes);
}

/// A mapping of which the engine watches a part cannot be moved as a whole: EFAULT.
void* remap(remap_function* by, void* at, size_t bytes, size_t wanted, int flags, void* to)
{
    const auto move = [&] { return by(at, bytes, wanted, flags, to); };
    const auto move_told = [&] { return told(move, SYS_mremap, at, bytes, wanted, flags, to); };
    return without_watching(move_told, EFAULT, reinterpret_cast<std::uintptr_t>(at), bytes);
}

int advise(advise_function* by, void* at, size_t bytes, int advice)
{
    const auto call = [&] { return by(at, bytes, advice); };
    const bool drops = advice == MADV_DONTNEED || advice == MADV_REMOVE;
    return drops ? told(call, SYS_madvise, at, bytes, advice) : call();
}

int detach(detach_function* by, const void* at)
{
    return told([&] { return by(at); }, SYS_shmdt, at);
}

} // namespace

// Two functions for each name, as for mmap() (descriptor_calls.cpp): UCX overwrites the code of what dlsym() finds.
#define WEFTIO_INTERCEPT_MAPPING(result, name, tell, parameters, ...)                                                  \
    WEFTIO_INTERCEPT_VERSION(result, name, found, "@@WEFTIO", WEFTIO_UNPACK parameters)                                \
    {                                                                                                                  \
        return tell(real().name, __VA_ARGS__);                                                                         \
    }                                                                                                                  \
    WEFTIO_INTERCEPT_VERSION(result, name, bound, "@" WEFTIO_LIBC_VERSION, WEFTIO_UNPACK parameters)                   \
    {                                                                                                                  \
        return tell(name##_found, __VA_ARGS__);                                                                        \
    }
#define WEFTIO_UNPACK(...) __VA_ARGS__

WEFTIO_INTERCEPT_MAPPING(int, munmap, unmap, (void* at, size_t bytes), at, bytes)
WEFTIO_INTERCEPT_MAPPING(int, madvise, advise, (void* at, size_t bytes, int advice), at, bytes, advice)
WEFTIO_INTERCEPT_MAPPING(int, shmdt, detach, (const void* at), at)

#define WEFTIO_INTERCEPT_MREMAP(variant, version, by)                                                                  \
    WEFTIO_INTERCEPT_VERSION(void*, mremap, variant, version, void* at, size_t bytes, size_t wanted, int flags, ...)   \
    {                                                                                                                  \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        void* const to = va_arg(more, void*);                                                                          \
        va_end(more);                                                                                                  \
        return remap(by, at, bytes, wanted, flags, to);                                                                \
    }
WEFTIO_INTERCEPT_MREMAP(found, "@@WEFTIO", real().mremap)
WEFTIO_INTERCEPT_MREMAP(bound, "@" WEFTIO_LIBC_VERSION, mremap_found)
