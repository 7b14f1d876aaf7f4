#include "real.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <type_traits>

namespace weftio::verbs::preload {

namespace {

/// Stands for a function that the C library lacks. `Name` distinguishes functions of the same type.
template <class Result>
Result fail_for_lack() noexcept
{
    errno = ENOSYS;
    if constexpr (std::is_integral_v<Result>)
        return static_cast<Result>(-1);
    else if constexpr (!std::is_void_v<Result>)
        return nullptr;
}
template <class Result, class... Arguments>
constexpr auto lacking(Result (*)(Arguments...)) noexcept
{
    return +[](Arguments...) -> Result { return fail_for_lack<Result>(); };
}
template <class... Arguments>
int fail_variadic(Arguments..., ...) noexcept
{
    return fail_for_lack<int>();
}
template <class... Arguments>
constexpr auto lacking(int (*)(Arguments..., ...)) noexcept
{
    return &fail_variadic<Arguments...>;
}
template <class... Arguments>
void* fail_variadic_pointer(Arguments..., ...) noexcept
{
    return fail_for_lack<void*>();
}
template <class... Arguments>
constexpr auto lacking(void* (*)(Arguments..., ...)) noexcept
{
    return &fail_variadic_pointer<Arguments...>;
}

// Plain system calls for an allocator that is called by dlsym().
int plain_open(const char* path, int flags, ...) noexcept
{
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, 0));
}
ssize_t plain_readlink(const char* path, char* to, size_t bytes) noexcept
{
    return syscall(SYS_readlinkat, AT_FDCWD, path, to, bytes);
}
ssize_t plain_write(int descriptor, const void* from, size_t bytes) noexcept
{
    return syscall(SYS_write, descriptor, from, bytes);
}
int plain_close(int descriptor) noexcept
{
    return static_cast<int>(syscall(SYS_close, descriptor));
}
void* plain_mmap(void* wish, size_t bytes, int protection, int flags, int descriptor, off_t offset) noexcept
{
    return reinterpret_cast<void*>(syscall(SYS_mmap, wish, bytes, protection, flags, descriptor, offset));
}

int plain_munmap(void* at, size_t bytes) noexcept
{
    return static_cast<int>(syscall(SYS_munmap, at, bytes));
}
int plain_madvise(void* at, size_t bytes, int advice) noexcept
{
    return static_cast<int>(syscall(SYS_madvise, at, bytes, advice));
}
void* plain_mremap(void* at, size_t bytes, size_t wanted, int flags, ...) noexcept
{
    va_list more;
    va_start(more, flags);
    void* const to = va_arg(more, void*);
    va_end(more);
    return reinterpret_cast<void*>(syscall(SYS_mremap, at, bytes, wanted, flags, to));
}

constexpr real_functions before_lookup() noexcept
{
    real_functions functions{
#define F(result, name, ...) .name = lacking(static_cast<result (*)(__VA_ARGS__)>(nullptr)),
#include "real_functions.def"
#undef F
    };
    functions.open = functions.open64 = plain_open;
    functions.readlink = plain_readlink;
    functions.write = plain_write;
    functions.close = plain_close;
    functions.mmap = functions.mmap64 = plain_mmap;
    functions.munmap = plain_munmap;
    functions.madvise = plain_madvise;
    functions.mremap = plain_mremap;
    return functions;
}

constinit real_functions functions = before_lookup();
constinit std::atomic<bool> found{false};
constinit thread_local bool looking = false;

template <class Function>
bool resolve(Function& function, const char* name) noexcept
{
    void* const next = dlsym(RTLD_NEXT, name);
    if (next != nullptr)
        __atomic_store_n(&function, reinterpret_cast<Function>(next), __ATOMIC_RELAXED);
    return next != nullptr;
}

void resolve_all() noexcept
{
    const int error = errno;
    bool all = true;
#define F(result, name, ...) all = resolve(functions.name, #name) && all;
#include "real_functions.def"
#undef F
    if (!all)
        dlerror(); // clears the error, so that the program's next dlerror() reports its own calls
    found.store(true, std::memory_order_release);
    errno = error;
}

__attribute__((constructor)) void resolve_early() noexcept
{
    real();
}

} // namespace

const real_functions& real() noexcept
{
    if (!found.load(std::memory_order_acquire) && !looking) {
        looking = true;
        resolve_all();
        looking = false;
    }
    return functions;
}

} // namespace weftio::verbs::preload
