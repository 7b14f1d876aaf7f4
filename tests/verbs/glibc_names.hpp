// Functions of glibc that no public header declares. Programs that were compiled with _FORTIFY_SOURCE, or for an old
// glibc, call them.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

extern "C" {
int __open_2(const char* path, int flags);
int __open64_2(const char* path, int flags);
int __openat_2(int folder, const char* path, int flags);
int __openat64_2(int folder, const char* path, int flags);
int __xstat(int version, const char* path, struct stat* file);
int __xstat64(int version, const char* path, struct stat64* file);
int __lxstat(int version, const char* path, struct stat* file);
int __lxstat64(int version, const char* path, struct stat64* file);
int __fxstat(int version, int descriptor, struct stat* file);
int __fxstat64(int version, int descriptor, struct stat64* file);
int __fxstatat(int version, int folder, const char* path, struct stat* file, int flags);
int __fxstatat64(int version, int folder, const char* path, struct stat64* file, int flags);
ssize_t __readlink_chk(const char* path, char* to, size_t bytes, size_t there);
ssize_t __readlinkat_chk(int folder, const char* path, char* to, size_t bytes, size_t there);
char* __getcwd_chk(char* to, size_t bytes, size_t there);
char* __realpath_chk(const char* path, char* resolved, size_t there);
}

namespace weftio::test {

#if defined(__x86_64__)
inline constexpr int stat_version = 1; ///< _STAT_VER, which headers no longer define
#else
inline constexpr int stat_version = 0;
#endif

} // namespace weftio::test
