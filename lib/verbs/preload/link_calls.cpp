// Functions that resolve links, and those that tell a path.
#include <cstdlib>
#include <cstring>

#include "place.hpp"
#include "real.hpp"

using namespace weftio::verbs::preload;

namespace {

/// realpath() and its like: the result names no folder of the tree.
template <class Call>
char* resolve(const char* path, Call call) noexcept
{
    char* const result = call(place(path).path());
    return result == nullptr ? nullptr : without_tree(result);
}

} // namespace

WEFTIO_INTERCEPT(ssize_t, readlink, const char* path, char* to, size_t bytes)
{
    return real().readlink(place(path).path(), to, bytes);
}
WEFTIO_INTERCEPT(ssize_t, __readlink_chk, const char* path, char* to, size_t bytes, size_t there)
{
    return real().__readlink_chk(place(path).path(), to, bytes, there);
}
WEFTIO_INTERCEPT(ssize_t, readlinkat, int folder, const char* path, char* to, size_t bytes)
{
    return real().readlinkat(folder, place(folder, path).path(), to, bytes);
}
WEFTIO_INTERCEPT(ssize_t, __readlinkat_chk, int folder, const char* path, char* to, size_t bytes, size_t there)
{
    return real().__readlinkat_chk(folder, place(folder, path).path(), to, bytes, there);
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

/// A working directory of the tree has the name by which the program went there.
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
