// The original functions that this library intercepts: those of the next library, usually glibc.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstdio>

namespace weftio::verbs::preload {

/// One pointer per function, never null: a function that the C library lacks fails with ENOSYS.
struct real_functions {
#define F(result, name, ...) result (*name)(__VA_ARGS__);
#include "real_functions.def"
#undef F
};

/// Looks up the functions at the first call. Any thread; async-signal-safe once a constructor of this library has run.
/// Calls during the lookup, such as by an allocator that dlsym() calls, get plain system calls.
const real_functions& real() noexcept;

} // namespace weftio::verbs::preload

/// Defines a function that programs call by the C library's name. Its C++ name differs, because the C library's headers
/// promise the compiler properties of their functions, such as that no path is null.
#define WEFTIO_INTERCEPT(result, name, ...)                                                                            \
    extern "C" __attribute__((visibility("default"))) result weftio_##name(__VA_ARGS__) __asm__(#name);                \
    extern "C" result weftio_##name(__VA_ARGS__)

/// Defines one version of such a function, named `name`_`variant` in C++.
#define WEFTIO_INTERCEPT_VERSION(result, name, variant, version, ...)                                                  \
    __asm__(".symver weftio_" #name "_" #variant ", " #name version);                                                  \
    extern "C" __attribute__((visibility("default"), noinline))                                                        \
    result name##_##variant(__VA_ARGS__) __asm__("weftio_" #name "_" #variant);                                        \
    extern "C" result name##_##variant(__VA_ARGS__)
