// Functions that resolve links or patterns, and those that return a path.
#include <cstdlib>
#include <cstring>

#include "real.hpp"
#include "target_path.hpp"

using namespace weftio::verbs::preload;

namespace {

/// realpath() and similar functions: the result does not contain the tree's folder.
template <class Call>
char* resolve(const char* path, Call call) noexcept
{
    char* const result = with_path(path, call);
    return result == nullptr ? nullptr : without_tree(result);
}

} // namespace

WEFTIO_INTERCEPT(ssize_t, readlink, const char* path, char* to, size_t bytes)
{
    return with_path(path, [&](const char* at) { return real().readlink(at, to, bytes); });
}
WEFTIO_INTERCEPT(ssize_t, __readlink_chk, const char* path, char* to, size_t bytes, size_t there)
{
    return with_path(path, [&](const char* at) { return real().__readlink_chk(at, to, bytes, there); });
}
WEFTIO_INTERCEPT(ssize_t, readlinkat, int folder, const char* path, char* to, size_t bytes)
{
    return with_path(folder, path, [&](const char* at) { return real().readlinkat(folder, at, to, bytes); });
}
WEFTIO_INTERCEPT(ssize_t, __readlinkat_chk, int folder, const char* path, char* to, size_t bytes, size_t there)
{
    return with_path(folder, path,
                     [&](const char* at) { return real().__readlinkat_chk(folder, at, to, bytes, there); });
}

WEFTIO_INTERCEPT(char*, realpath, const char* path, char* resolved)
{
    return resolve(path, [&](const char* to) { return real().realpath(to, resolved); });
}
WEFTIO_INTERCEPT(char*, __realpath_chk, const char* path, char* resolved, size_t there)
{
    return resolve(path, [&](const char* to) { return real().__realpath_chk(to, resolved, there); });
}
WEFTIO_INTERCEPT(char*, canonicalize_file_name, const char* path)
{
    return resolve(path, [&](const char* to) { return real().canonicalize_file_name(to); });
}

namespace {

/// glob() and similar functions: `call(pattern)` calls the C library. Names found in the tree are converted to those
/// that the program knows.
template <class Names, class Call>
int find_names(const char* pattern, int flags, Names* names, Call call) noexcept
{
    const int result = with_path(pattern, call);
    const std::size_t first = (flags & GLOB_DOOFFS) != 0 ? names->gl_offs : 0;
    for (std::size_t i = 0; result == 0 && i < names->gl_pathc; ++i)
        without_tree(names->gl_pathv[first + i]);
    return result;
}

} // namespace

WEFTIO_INTERCEPT(int, glob, const char* pattern, int flags, int (*failed)(const char*, int), glob_t* names)
{
    return find_names(pattern, flags, names, [&](const char* in) { return real().glob(in, flags, failed, names); });
}
WEFTIO_INTERCEPT(int, glob64, const char* pattern, int flags, int (*failed)(const char*, int), glob64_t* names)
{
    return find_names(pattern, flags, names, [&](const char* in) { return real().glob64(in, flags, failed, names); });
}

/// A working directory in the tree is returned with the name that the program used.
WEFTIO_INTERCEPT(char*, getcwd, char* to, size_t bytes)
{
    char* const result = real().getcwd(to, bytes);
    return result == nullptr ? nullptr : without_tree(result);
}
WEFTIO_INTERCEPT(char*, __getcwd_chk, char* to, size_t bytes, size_t there)
{
    char* const result = real().__getcwd_chk(to, bytes, there);
    return result == nullptr ? nullptr : without_tree(result);
}
WEFTIO_INTERCEPT(char*, get_current_dir_name)
{
    char* const result = real().get_current_dir_name();
    return result == nullptr ? nullptr : without_tree(result);
}
