// Every function that returns the type of a path or a descriptor.
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "glibc_names.hpp"
#include "ordinary_file.hpp"

namespace weftio::test {

namespace {

constexpr const char* node = "/dev/infiniband/uverbs1";

/// The fields that all kinds of stat() return.
struct facts {
    int result = -1, error = 0;
    mode_t mode = 0;
    dev_t device = 0;
    ino_t inode = 0;
};
template <class Stat, class Call>
facts facts_by(Call call)
{
    Stat file{};
    facts found;
    found.result = call(&file);
    found.error = errno;
    if constexpr (requires { file.stx_mode; })
        return {found.result, found.error, file.stx_mode, makedev(file.stx_rdev_major, file.stx_rdev_minor),
                file.stx_ino};
    else
        return {found.result, found.error, file.st_mode, file.st_rdev, file.st_ino};
}

struct path_stat {
    const char* name;
    facts (*call)(const char* path);
};
#define BY(type, call) [](const char* path) { return facts_by<struct type>([&](struct type* file) { return call; }); }
const path_stat path_stats[] = {
    {"stat", BY(stat, ::stat(path, file))},
    {"stat64", BY(stat64, ::stat64(path, file))},
    {"lstat", BY(stat, ::lstat(path, file))},
    {"lstat64", BY(stat64, ::lstat64(path, file))},
    {"fstatat", BY(stat, ::fstatat(AT_FDCWD, path, file, AT_SYMLINK_NOFOLLOW))},
    {"fstatat64", BY(stat64, ::fstatat64(AT_FDCWD, path, file, 0))},
    {"__xstat", BY(stat, __xstat(stat_version, path, file))},
    {"__xstat64", BY(stat64, __xstat64(stat_version, path, file))},
    {"__lxstat", BY(stat, __lxstat(stat_version, path, file))},
    {"__lxstat64", BY(stat64, __lxstat64(stat_version, path, file))},
    {"__fxstatat", BY(stat, __fxstatat(stat_version, AT_FDCWD, path, file, 0))},
    {"__fxstatat64", BY(stat64, __fxstatat64(stat_version, AT_FDCWD, path, file, 0))},
    {"statx", BY(statx, ::statx(AT_FDCWD, path, 0, STATX_BASIC_STATS, file))},
};
#undef BY

class StatOfAPath : public testing::TestWithParam<path_stat> {};
INSTANTIATE_TEST_SUITE_P(Functions, StatOfAPath, testing::ValuesIn(path_stats),
                         [](const auto& it) { return it.param.name; });

TEST_P(StatOfAPath, FindsANode)
{
    const facts found = GetParam().call(node);
    EXPECT_EQ(0, found.result);
    EXPECT_EQ(mode_t{S_IFCHR | 0666}, found.mode);
    EXPECT_EQ(makedev(231, 193), found.device);
}

TEST_P(StatOfAPath, FindsWhatDescribesADevice)
{
    EXPECT_TRUE(S_ISREG(GetParam().call("/sys/class/infiniband/mlx5_0/ports/1/state").mode));
    EXPECT_TRUE(S_ISDIR(GetParam().call("/dev/infiniband").mode));
}

TEST_P(StatOfAPath, FindsAnOrdinaryFile)
{
    const ordinary_file file;
    const facts found = GetParam().call(file.path().c_str());
    EXPECT_EQ(0, found.result);
    EXPECT_TRUE(S_ISREG(found.mode));
    EXPECT_EQ(makedev(1, 3), GetParam().call("/dev/null").device);
}

TEST_P(StatOfAPath, HasTheErrnoOfTheRealFunction)
{
    for (const char* path : {"/dev/infiniband/uverbs2", "/dev/infiniband/uverbs00", "/dev/infiniband/uverbs0x",
                             "/dev/infiniband/uverbs", "/dev/infiniband/uverbs4294967296", "/dev/infiniband/umad0",
                             "/sys/class/infiniband/mlx5_2", "/tmp/weftio-nowhere/file"}) {
        const facts found = GetParam().call(path);
        EXPECT_EQ(-1, found.result) << path;
        EXPECT_EQ(ENOENT, found.error) << path;
    }
    EXPECT_EQ(ENOTDIR, GetParam().call("/dev/infiniband/uverbs0/").error);
}

TEST_P(StatOfAPath, SaysThatTheConnectionManagerIsAMiscDevice)
{
    const facts found = GetParam().call("/dev/infiniband/rdma_cm");
    EXPECT_EQ(0, found.result);
    EXPECT_TRUE(S_ISCHR(found.mode));
    EXPECT_EQ(makedev(10, 122), found.device);
}

struct descriptor_stat {
    const char* name;
    facts (*call)(int descriptor);
};
#define BY(type, call) [](int descriptor) { return facts_by<struct type>([&](struct type* file) { return call; }); }
const descriptor_stat descriptor_stats[] = {
    {"fstat", BY(stat, ::fstat(descriptor, file))},
    {"fstat64", BY(stat64, ::fstat64(descriptor, file))},
    {"__fxstat", BY(stat, __fxstat(stat_version, descriptor, file))},
    {"__fxstat64", BY(stat64, __fxstat64(stat_version, descriptor, file))},
    {"fstatat", BY(stat, ::fstatat(descriptor, "", file, AT_EMPTY_PATH))},
    {"fstatat64", BY(stat64, ::fstatat64(descriptor, "", file, AT_EMPTY_PATH))},
    {"statx", BY(statx, ::statx(descriptor, "", AT_EMPTY_PATH, STATX_BASIC_STATS, file))},
};
#undef BY

class StatOfADescriptor : public testing::TestWithParam<descriptor_stat> {};
INSTANTIATE_TEST_SUITE_P(Functions, StatOfADescriptor, testing::ValuesIn(descriptor_stats),
                         [](const auto& it) { return it.param.name; });

TEST_P(StatOfADescriptor, FindsWhatTheStatOfItsPathFinds)
{
    const int descriptor = ::open(node, O_RDWR | O_CLOEXEC);
    struct stat by_path;
    ASSERT_EQ(0, ::stat(node, &by_path));
    const facts found = GetParam().call(descriptor);
    EXPECT_EQ(0, found.result);
    EXPECT_EQ(by_path.st_mode, found.mode);
    EXPECT_EQ(by_path.st_rdev, found.device);
    EXPECT_EQ(by_path.st_ino, found.inode);
    ::close(descriptor);
}

TEST_P(StatOfADescriptor, FindsAnOrdinaryFile)
{
    const int descriptor = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    EXPECT_EQ(makedev(1, 3), GetParam().call(descriptor).device);
    ::close(descriptor);
    const facts closed = GetParam().call(descriptor);
    EXPECT_EQ(-1, closed.result);
    EXPECT_EQ(EBADF, closed.error);
}

struct access_call {
    const char* name;
    int (*call)(const char* path, int mode);
};
const access_call access_calls[] = {
    {"access", ::access},
    {"eaccess", ::eaccess},
    {"euidaccess", ::euidaccess},
    {"faccessat", [](const char* path, int mode) { return ::faccessat(AT_FDCWD, path, mode, 0); }},
};

class Access : public testing::TestWithParam<access_call> {};
INSTANTIATE_TEST_SUITE_P(Functions, Access, testing::ValuesIn(access_calls),
                         [](const auto& it) { return it.param.name; });

TEST_P(Access, IsThatOfEverybodyToANode)
{
    EXPECT_EQ(0, GetParam().call(node, R_OK | W_OK));
    EXPECT_EQ(-1, GetParam().call(node, X_OK));
    EXPECT_EQ(EACCES, errno);
    EXPECT_EQ(0, GetParam().call("/sys/class/infiniband/mlx5_0", F_OK));
    EXPECT_EQ(-1, GetParam().call("/dev/infiniband/uverbs2", F_OK));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_EQ(0, GetParam().call("/dev/null", R_OK | W_OK));
}

TEST(Links, AreThoseOfTheKernel)
{
    constexpr const char* path = "/sys/class/infiniband/mlx5_0";
    const std::string wanted = "../../devices/pci7765:00/7765:00:00.0/infiniband/mlx5_0";
    char to[PATH_MAX];
    ssize_t (*const calls[])(const char*, char*) = {
        [](const char* from, char* text) { return ::readlink(from, text, PATH_MAX); },
        [](const char* from, char* text) { return ::readlinkat(AT_FDCWD, from, text, PATH_MAX); },
        [](const char* from, char* text) { return __readlink_chk(from, text, PATH_MAX, PATH_MAX); },
        [](const char* from, char* text) { return __readlinkat_chk(AT_FDCWD, from, text, PATH_MAX, PATH_MAX); }};
    const ordinary_file file;
    for (const auto call : calls) {
        ASSERT_EQ(static_cast<ssize_t>(wanted.size()), call(path, to));
        EXPECT_EQ(wanted, std::string(to, wanted.size()));
        EXPECT_EQ(4, call(file.link().c_str(), to));
        EXPECT_EQ(-1, call("/dev/infiniband/uverbs0", to));
        EXPECT_EQ(EINVAL, errno);
    }
}

TEST(RealPath, NamesNoFolderOfTheTree)
{
    char* (*const calls[])(const char*) = {
        [](const char* path) { return ::realpath(path, nullptr); },
        [](const char* path) { return ::realpath(path, static_cast<char*>(std::malloc(PATH_MAX))); },
        [](const char* path) { return ::canonicalize_file_name(path); },
        [](const char* path) { return __realpath_chk(path, static_cast<char*>(std::malloc(PATH_MAX)), PATH_MAX); }};
    const ordinary_file file;
    for (const auto call : calls) {
        const auto text = [&](const char* path) {
            char* const found = call(path);
            const std::string copy = found == nullptr ? std::strerror(errno) : found;
            std::free(found);
            return copy;
        };
        EXPECT_EQ("/sys/devices/pci7765:00/7765:00:01.0", text("/sys/class/infiniband/mlx5_1/device"));
        EXPECT_EQ("/dev/infiniband/uverbs0", text("/dev/infiniband/uverbs0"));
        EXPECT_EQ(std::filesystem::canonical(file.path()).string(), text(file.link().c_str()));
        EXPECT_EQ("No such file or directory", text("/tmp/weftio-nowhere"));
    }
    EXPECT_EQ("/sys/devices/pci7765:00/7765:00:00.0/infiniband/mlx5_0",
              std::filesystem::canonical("/sys/class/infiniband/mlx5_0"));
}

TEST(Attributes, AreThoseOfTheFile)
{
    char names[256];
    EXPECT_LE(0, ::listxattr("/dev/infiniband/uverbs0", names, sizeof names));
    EXPECT_LE(0, ::llistxattr("/sys/class/infiniband/mlx5_0", names, sizeof names));
    EXPECT_EQ(-1, ::getxattr("/dev/infiniband/uverbs0", "user.none", names, sizeof names));
    EXPECT_TRUE(errno == ENODATA || errno == EOPNOTSUPP) << std::strerror(errno);
    EXPECT_EQ(-1, ::lgetxattr("/dev/infiniband/none", "user.none", names, sizeof names));
    EXPECT_EQ(ENOENT, errno);
}

} // namespace
} // namespace weftio::test
