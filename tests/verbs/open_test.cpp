// Every function that opens a path.
#include <glob.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>

#include "glibc_names.hpp"
#include "node.hpp"
#include "ordinary_file.hpp"

namespace weftio::test {

namespace {

constexpr const char *node = "/dev/infiniband/uverbs1", *guid = "/sys/class/infiniband/mlx5_1/node_guid";

struct opener {
    const char* name;
    int (*open)(const char* path, int flags);
};
int through_stream(FILE* stream)
{
    if (stream == nullptr)
        return -1;
    const int descriptor = ::dup(fileno(stream));
    std::fclose(stream);
    return descriptor;
}
constexpr const char* stream_mode(int flags)
{
    return (flags & O_ACCMODE) == O_RDONLY ? "re" : "r+e";
}

const opener openers[] = {
    {"open", [](const char* path, int flags) { return ::open(path, flags); }},
    {"open64", [](const char* path, int flags) { return ::open64(path, flags); }},
    {"openat", [](const char* path, int flags) { return ::openat(AT_FDCWD, path, flags); }},
    {"openat64", [](const char* path, int flags) { return ::openat64(AT_FDCWD, path, flags); }},
    {"__open_2", __open_2},
    {"__open64_2", __open64_2},
    {"__openat_2", [](const char* path, int flags) { return __openat_2(AT_FDCWD, path, flags); }},
    {"__openat64_2", [](const char* path, int flags) { return __openat64_2(AT_FDCWD, path, flags); }},
    {"fopen", [](const char* path, int flags) { return through_stream(std::fopen(path, stream_mode(flags))); }},
    {"fopen64", [](const char* path, int flags) { return through_stream(::fopen64(path, stream_mode(flags))); }},
};

std::string text_of(int descriptor)
{
    char text[64] = "";
    return ::read(descriptor, text, sizeof text - 1) < 0 ? std::strerror(errno) : text;
}

class Opening : public testing::TestWithParam<opener> {
 protected:
    int open(const std::string& path, int flags = O_RDONLY)
    {
        return descriptor_ = GetParam().open(path.c_str(), flags);
    }
    void TearDown() override
    {
        if (descriptor_ >= 0)
            ::close(descriptor_);
    }

 private:
    int descriptor_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Functions, Opening, testing::ValuesIn(openers), [](const auto& it) { return it.param.name; });

TEST_P(Opening, OpensANode)
{
    const int descriptor = open(node, O_RDWR);
    ASSERT_GE(descriptor, 0) << std::strerror(errno);
    struct stat file;
    ASSERT_EQ(0, ::fstat(descriptor, &file));
    EXPECT_EQ(mode_t{S_IFCHR | 0666}, file.st_mode);
    EXPECT_EQ(makedev(231, 193), file.st_rdev);
}

TEST_P(Opening, OpensWhatDescribesADevice)
{
    EXPECT_EQ("0200:00ff:fe00:0002\n", text_of(open(guid)));
}

TEST_P(Opening, OpensAnOrdinaryFile)
{
    const ordinary_file file;
    EXPECT_EQ("plain", text_of(open(file.path())));
}

TEST_P(Opening, HasTheErrnoOfTheRealFunction)
{
    EXPECT_EQ(-1, open("/dev/infiniband/uverbs2"));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_EQ(-1, open("/dev/infiniband/uverbs00"));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_EQ(-1, open("/dev/infiniband/uverbs0/"));
    EXPECT_EQ(ENOTDIR, errno);
    EXPECT_EQ(-1, open("/sys/class/infiniband/mlx5_0/" + std::string(5000, 'a')));
    EXPECT_EQ(ENAMETOOLONG, errno);
    EXPECT_EQ(-1, open("/tmp/weftio-nowhere/file"));
    EXPECT_EQ(ENOENT, errno);
}

TEST_P(Opening, ReportsAMissingFileBesideTheNodes)
{
    const int node = open_node(0);
    const ssize_t before = ask(node, "refused umad0");
    EXPECT_EQ(-1, open("/dev/infiniband/umad0"));
    EXPECT_EQ(ENOENT, errno);
    EXPECT_EQ(before + 1, ask(node, "refused umad0"));
    EXPECT_EQ(-1, open("/dev/infiniband/umad0/x"));
    EXPECT_EQ(-1, open("/sys/class/infiniband/umad0"));
    EXPECT_EQ(before + 1, ask(node, "refused umad0"));
    ::close(node);
}

TEST_P(Opening, FindsTheConnectionManagersVersionAndNumber)
{
    const auto line_of = [this](const std::string& path) {
        const int number = open(path);
        std::array<char, 32> text{};
        EXPECT_LT(0, ::read(number, text.data(), text.size()));
        ::close(number);
        return std::string(text.data());
    };
    EXPECT_EQ("4\n", line_of("/sys/class/misc/rdma_cm/abi_version"));
    EXPECT_EQ("10:122\n", line_of("/sys/class/misc/rdma_cm/dev"));
}

TEST(OpeningANode, ChecksFlagsAsTheKernelDoes)
{
    EXPECT_EQ(-1, ::open(node, O_RDWR | O_DIRECTORY));
    EXPECT_EQ(ENOTDIR, errno);
    EXPECT_EQ(-1, ::open(node, O_RDWR | O_CREAT | O_EXCL, 0600));
    EXPECT_EQ(EEXIST, errno);
    const char* volatile nowhere = nullptr; // compilers do not know
    EXPECT_EQ(-1, ::open(nowhere, O_RDWR));
    EXPECT_EQ(EFAULT, errno);
}

TEST(OpeningANode, IsClosedOnExecAsTheFlagsSay)
{
    const int kept = ::open(node, O_RDWR), closed = ::open(node, O_RDWR | O_CLOEXEC);
    EXPECT_EQ(0, ::fcntl(kept, F_GETFD));
    EXPECT_EQ(FD_CLOEXEC, ::fcntl(closed, F_GETFD));
    ::close(kept);
    ::close(closed);
}

TEST(Opening, GivesAFileTheModeThatIsAskedFor)
{
    const ordinary_file file;
    const mode_t before = ::umask(0);
    ::close(::open((file.folder() + "/one").c_str(), O_CREAT | O_WRONLY, 0640));
    ::close(::openat64(AT_FDCWD, (file.folder() + "/two").c_str(), O_CREAT | O_WRONLY, 0604));
    const int unnamed = ::open(file.folder().c_str(), O_TMPFILE | O_RDWR, 0611);
    ::umask(before);
    struct stat found;
    EXPECT_EQ(0, ::stat((file.folder() + "/one").c_str(), &found));
    EXPECT_EQ(mode_t{S_IFREG | 0640}, found.st_mode);
    EXPECT_EQ(0, ::stat((file.folder() + "/two").c_str(), &found));
    EXPECT_EQ(mode_t{S_IFREG | 0604}, found.st_mode);
    if (unnamed < 0)
        GTEST_SKIP() << "O_TMPFILE: " << std::strerror(errno);
    EXPECT_EQ(0, ::fstat(unnamed, &found));
    EXPECT_EQ(mode_t{S_IFREG | 0611}, found.st_mode);
    ::close(unnamed);
}

struct spelling {
    const char *name, *path;
    bool is_ours;
};
const spelling spellings[] = {
    {"Slashes", "//sys///class//infiniband/mlx5_0/node_guid", true},
    {"Dots", "/sys/./class/infiniband/././mlx5_0/./node_guid", true},
    {"BackAndForth", "/sys/class/infiniband/mlx5_0/ports/../node_guid", true},
    {"BackFromALink", "/sys/class/infiniband/mlx5_1/../mlx5_0/node_guid", false}, // Linux goes to where it leads
    {"ByItsDevice", "/sys/class/infiniband/mlx5_0/device/infiniband/mlx5_0/node_guid", true},
    {"ByItsNode", "/sys/class/infiniband_verbs/uverbs0/device/infiniband/mlx5_0/node_guid", true},
    {"ByItsBus", "/sys/bus/pci/devices/7765:00:00.0/infiniband/mlx5_0/node_guid", true},
    {"ByItsRoot", "/sys/devices/pci7765:00/7765:00:00.0/infiniband/mlx5_0/node_guid", true},
    {"AnotherFolder", "/sys/class/infiniband2/mlx5_0/node_guid", false},
    {"AShorterName", "/sys/class/infini/mlx5_0/node_guid", false},
    {"OutOfTheFolder", "/sys/class/infiniband/../net/lo/mtu", false},
    {"AnotherBus", "/sys/bus/pci/devices/0000:00:00.0/infiniband/mlx5_0/node_guid", false},
    {"NotAbsolute", "sys/class/infiniband/mlx5_0/node_guid", false},
};

class Spelling : public testing::TestWithParam<spelling> {};
INSTANTIATE_TEST_SUITE_P(Paths, Spelling, testing::ValuesIn(spellings), [](const auto& it) { return it.param.name; });

TEST_P(Spelling, IsRecognized)
{
    const int descriptor = ::open(GetParam().path, O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(GetParam().is_ours, text_of(descriptor) == "0200:00ff:fe00:0001\n");
    if (descriptor >= 0)
        ::close(descriptor);
}

TEST(RelativePaths, ArePathsOfAFolderThatADescriptorOrTheWorkingDirectoryNames)
{
    const int root = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int folder = ::open("/dev/infiniband", O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int by_root = ::openat(root, "sys/class/infiniband/mlx5_1/node_guid", O_RDONLY | O_CLOEXEC);
    EXPECT_EQ("0200:00ff:fe00:0002\n", text_of(by_root));
    struct stat file;
    EXPECT_EQ(0, ::fstatat(folder, "uverbs1", &file, 0));
    EXPECT_EQ(makedev(231, 193), file.st_rdev);
    const std::filesystem::path before = std::filesystem::current_path();
    EXPECT_EQ(0, ::chdir("/dev/infiniband"));
    EXPECT_EQ(0, ::lstat("uverbs0", &file));
    EXPECT_EQ(makedev(231, 192), file.st_rdev);
    char text[PATH_MAX];
    EXPECT_STREQ("/dev/infiniband", ::getcwd(text, sizeof text));
    EXPECT_EQ("/dev/infiniband", std::filesystem::current_path());
    EXPECT_STREQ("/dev/infiniband", __getcwd_chk(text, sizeof text, sizeof text));
    ::unsetenv("PWD");
    char* const made = ::get_current_dir_name();
    EXPECT_STREQ("/dev/infiniband", made);
    std::free(made);
    std::filesystem::current_path(before);
    EXPECT_EQ(before.string(), ::getcwd(text, sizeof text));
    for (const int descriptor : {root, folder, by_root})
        ::close(descriptor);
}

/// Names in a folder, but "." and "..", in order.
std::string names_by_opendir(const char* path)
{
    DIR* const folder = ::opendir(path);
    if (folder == nullptr)
        return std::strerror(errno);
    std::string names;
    while (const dirent* entry = ::readdir(folder))
        if (entry->d_name[0] != '.')
            names += std::string(entry->d_name) + " ";
    ::closedir(folder);
    return names;
}

template <class Entry, class Scan, class Sort>
std::string names_by_scandir(const char* path, Scan scan, Sort sort)
{
    Entry** entries;
    const int count = scan(
        path, &entries, [](const Entry* entry) { return entry->d_name[0] == '.' ? 0 : 1; }, sort);
    std::string names;
    for (int i = 0; i < count; ++i) {
        names += std::string(entries[i]->d_name) + " ";
        std::free(entries[i]);
    }
    if (count >= 0)
        std::free(entries);
    return count < 0 ? std::strerror(errno) : names;
}

TEST(Folders, AreListed)
{
    const ordinary_file file;
    EXPECT_EQ("mlx5_0 mlx5_1 ", names_by_opendir("/sys/class/infiniband")) << "the first device is listed first";
    EXPECT_EQ("uverbs0 uverbs1 rdma_cm ", names_by_opendir("/dev/infiniband/"));
    EXPECT_EQ("No such file or directory", names_by_opendir("/sys/class/infiniband_mad"));
    EXPECT_EQ("file link ", names_by_scandir<dirent>(file.folder().c_str(), ::scandir, ::alphasort));
    EXPECT_EQ("mlx5_0 mlx5_1 ", names_by_scandir<dirent>("/sys/class/infiniband", ::scandir, ::alphasort));
    EXPECT_EQ("mlx5_0 mlx5_1 ", names_by_scandir<dirent64>("/sys/class/infiniband", ::scandir64, ::alphasort64));
}

template <class Names, class Glob, class Free>
std::string names_by_glob(const char* pattern, int flags, Glob glob, Free free)
{
    Names found{};
    found.gl_offs = 2;
    const int result = glob(pattern, flags, nullptr, &found);
    std::string names = result == 0 ? "" : "none";
    const std::size_t first = (flags & GLOB_DOOFFS) != 0 ? found.gl_offs : 0;
    for (std::size_t i = 0; i < found.gl_pathc; ++i)
        names += std::string(found.gl_pathv[first + i]) + " ";
    free(&found);
    return names;
}

TEST(Patterns, FindWhatDescribesDevices)
{
    const auto names = [](const char* pattern, int flags = 0) {
        const std::string found = names_by_glob<glob_t>(pattern, flags, ::glob, ::globfree);
        EXPECT_EQ(found, names_by_glob<glob64_t>(pattern, flags, ::glob64, ::globfree64));
        return found;
    };
    EXPECT_EQ("/dev/infiniband/uverbs0 /dev/infiniband/uverbs1 ", names("/dev/infiniband/uverbs*"));
    EXPECT_EQ("/sys/class/infiniband/mlx5_1/ports/1/gids/0 ",
              names("/sys/class/infiniband/*1/ports/*/gids/0", GLOB_DOOFFS));
    EXPECT_EQ("none", names("/sys/class/infiniband/mthca*"));
    EXPECT_EQ("/dev/null ", names("/dev/nul[l]"));
}

} // namespace
} // namespace weftio::test
