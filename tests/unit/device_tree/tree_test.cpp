#include "engine/tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "weftio/error.hpp"

namespace weftio::test {

namespace {

namespace fs = std::filesystem;
using verbs::device_description;
using verbs::tree;

std::vector<device_description> two_devices()
{
    device_description first{
        .name = "mlx5_0",
        .guid = 0x0200'00ff'fe12'3456,
        .firmware = "28.39.1002",
        .mtu_bytes = 4200,
        .mac = {2, 0, 0, 0x12, 0x34, 0x56},
        .gids = {{.gid = "fe80:0000:0000:0000:0000:00ff:fe12:3456", .interface = "weft0"},
                 {.gid = "0000:0000:0000:0000:0000:ffff:0a4d:0001", .interface = "weft0"},
                 {.gid = "0000:0000:0000:0000:0000:0000:0000:0000", .type = "IB/RoCE v1", .interface = ""}}};
    device_description second = first;
    second.name = "mlx5_1";
    return {first, second};
}

std::string text_of(const fs::path& path)
{
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// A folder for trees, which is removed.
class Tree : public testing::Test {
 protected:
    Tree()
    {
        std::string name = (fs::canonical(fs::temp_directory_path()) / "weftio-trees.XXXXXX").string();
        place_ = ::mkdtemp(name.data());
    }
    ~Tree() override { fs::remove_all(place_); }

    std::vector<std::string> names() const
    {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(place_))
            found.push_back(entry.path().filename().string());
        return found;
    }
    fs::path make_folder(const std::string& name) const
    {
        fs::create_directory(place_ / name);
        return place_ / name;
    }

    fs::path place_;
};

/// A number that no process has.
pid_t dead_process()
{
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(0);
    ::waitpid(child, nullptr, 0);
    return child;
}

std::string name_of(pid_t process)
{
    return "weftio-run-" + std::to_string(process) + "-abcdef";
}

TEST_F(Tree, HasWhatLibrariesRead)
{
    const tree made(two_devices(), {place_});
    const std::string sys = made.path() + "/sys/class/";
    const std::pair<std::string, std::string> texts[] = {
        {"infiniband_verbs/abi_version", "6"},
        {"infiniband_verbs/uverbs1/ibdev", "mlx5_1"},
        {"infiniband_verbs/uverbs1/dev", "231:193"},
        {"infiniband_verbs/uverbs0/abi_version", "1"},
        {"infiniband_verbs/uverbs0/device/vendor", "0x15b3"},
        {"infiniband_verbs/uverbs0/device/device", "0x1021"},
        {"infiniband_verbs/uverbs0/device/modalias", "pci:v000015B3d00001021sv000015B3sd00000008bc02sc00i00"},
        {"infiniband/mlx5_0/device/class", "0x020000"},
        {"infiniband/mlx5_0/node_type", "1: CA"},
        {"infiniband/mlx5_0/node_guid", "0200:00ff:fe12:3456"},
        {"infiniband/mlx5_0/sys_image_guid", "0200:00ff:fe12:3456"},
        {"infiniband/mlx5_0/fw_ver", "28.39.1002"},
        {"infiniband/mlx5_0/hca_type", "MT4129"},
        {"infiniband/mlx5_0/ports/1/state", "4: ACTIVE"},
        {"infiniband/mlx5_0/ports/1/phys_state", "5: LinkUp"},
        {"infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)"},
        {"infiniband/mlx5_0/ports/1/link_layer", "Ethernet"},
        {"infiniband/mlx5_0/ports/1/pkeys/0", "0xffff"},
        {"infiniband/mlx5_0/ports/1/gids/1", "0000:0000:0000:0000:0000:ffff:0a4d:0001"},
        {"infiniband/mlx5_0/ports/1/gid_attrs/types/0", "RoCE v2"},
        {"infiniband/mlx5_0/ports/1/gid_attrs/types/2", "IB/RoCE v1"},
        {"infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "weft0"},
        {"infiniband/mlx5_0/device/net/weft0/address", "02:00:00:12:34:56"},
        {"infiniband/mlx5_0/device/net/weft0/mtu", "4200"},
        {"infiniband/mlx5_0/device/net/weft0/device/vendor", "0x15b3"},
    };
    for (const auto& [name, text] : texts)
        EXPECT_EQ(text + "\n", text_of(sys + name)) << name;
    EXPECT_FALSE(fs::exists(sys + "infiniband/mlx5_0/ports/1/gid_attrs/ndevs/2")) << "as Linux: no interface, no file";
    EXPECT_FALSE(fs::exists(sys + "infiniband/mlx5_0/ports/1/gids/3"));
}

TEST_F(Tree, IsLaidOutAsTheKernelDoes)
{
    const tree made(two_devices(), {place_});
    const auto real = [&](const char* path) { return fs::canonical(made.path() + path).string(); };
    const std::string pci = made.path() + "/sys/devices/pci7765:00/7765:00:01.0";
    EXPECT_EQ(pci + "/infiniband/mlx5_1", real("/sys/class/infiniband/mlx5_1"));
    EXPECT_EQ(pci, real("/sys/class/infiniband/mlx5_1/device"));
    EXPECT_EQ(pci, real("/sys/class/infiniband_verbs/uverbs1/device"));
    EXPECT_EQ(pci, real("/sys/bus/pci/devices/7765:00:01.0"));
    EXPECT_EQ(made.path() + "/sys/class/infiniband", real("/sys/class/infiniband/mlx5_1/subsystem"));
    EXPECT_EQ(made.path() + "/sys/bus/pci/drivers/mlx5_core", real("/sys/class/infiniband/mlx5_1/device/driver"));
    EXPECT_TRUE(fs::is_regular_file(made.path() + "/dev/infiniband/uverbs1"));
    EXPECT_EQ(made.path(), fs::canonical(made.path()).string());
}

TEST_F(Tree, IsNearToCoresThatAreThere)
{
    const tree made(two_devices(), {place_});
    const std::string device = made.path() + "/sys/class/infiniband/mlx5_0/device/";
    const bool has_nodes = fs::exists("/sys/devices/system/node/node0/cpumap");
    EXPECT_EQ(has_nodes ? "0\n" : "-1\n", text_of(device + "numa_node"));
    if (has_nodes) {
        EXPECT_EQ(text_of("/sys/devices/system/node/node0/cpulist"), text_of(device + "local_cpulist"));
    }
    EXPECT_LT(1u, text_of(device + "local_cpus").size());
}

TEST_F(Tree, IsRemovedAtItsEnd)
{
    std::optional<tree> one, other;
    one.emplace(two_devices(), std::vector{place_});
    other.emplace(two_devices(), std::vector{place_});
    EXPECT_EQ(2u, names().size());
    one.reset();
    EXPECT_THAT(names(), testing::ElementsAre(fs::path(other->path()).filename().string()));
    other.reset();
    EXPECT_TRUE(names().empty());
}

TEST_F(Tree, IsNotRemovedByAChild)
{
    std::optional<tree> made;
    made.emplace(two_devices(), std::vector{place_});
    const pid_t child = ::fork();
    if (child == 0) {
        made.reset();
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(1u, names().size());
}

TEST_F(Tree, ClosesNoDescriptorOfOthers)
{
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    std::optional<tree> made;
    made.emplace(two_devices(), std::vector{place_});
    ::close(next); // its lock, as programs do that close all they do not know
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(next, null);
    made.reset();
    EXPECT_EQ(0, ::close(null));
    EXPECT_TRUE(names().empty());
}

TEST_F(Tree, GoesToTheNextPlaceWhenOneTakesNothing)
{
    const tree made(two_devices(), {"/weftio-nowhere", "/dev/null", place_});
    EXPECT_EQ(place_, fs::path(made.path()).parent_path());
}

TEST_F(Tree, SaysWhyNoPlaceTakesIt)
{
    try {
        const tree made(two_devices(), {"/weftio-nowhere", "/dev/null"});
        FAIL() << "made in " << made.path();
    } catch (const error& refused) {
        EXPECT_EQ(errc::permission_denied, refused.code());
        EXPECT_THAT(refused.what(),
                    testing::HasSubstr("/weftio-nowhere: No such file or directory; /dev/null: Not a directory"));
        EXPECT_THAT(refused.what(), testing::HasSubstr("set TMPDIR"));
    }
}

TEST_F(Tree, OfAProcessThatWasKilledIsSwept)
{
    const pid_t child = ::fork();
    if (child == 0) {
        new tree(two_devices(), {place_});
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    EXPECT_EQ(1u, names().size());
    const tree made(two_devices(), {place_});
    EXPECT_THAT(names(), testing::ElementsAre(fs::path(made.path()).filename().string()));
}

TEST_F(Tree, OfALivingProcessStays)
{
    int stop[2], ready[2];
    ASSERT_EQ(0, ::pipe(stop));
    ASSERT_EQ(0, ::pipe(ready));
    const pid_t child = ::fork();
    char byte = 0;
    if (child == 0) {
        new tree(two_devices(), {place_});
        for (int each = 3; each != 256; ++each) // as daemons do
            if (each != stop[0] && each != ready[1])
                ::close(each);
        [[maybe_unused]] const bool moved = ::write(ready[1], &byte, 1) == 1 && ::read(stop[0], &byte, 1) == 1;
        ::_exit(0);
    }
    EXPECT_EQ(1, ::read(ready[0], &byte, 1));
    verbs::sweep_trees(place_);
    EXPECT_EQ(1u, names().size());
    ::close(stop[1]);
    ::waitpid(child, nullptr, 0);
    verbs::sweep_trees(place_);
    EXPECT_TRUE(names().empty());
    for (const int end : {stop[0], ready[0], ready[1]})
        ::close(end);
}

TEST_F(Tree, WhoseLockIsHeldStays)
{
    const fs::path folder = make_folder(name_of(dead_process())); // a process of another container, from here
    const int lock = ::open((folder / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_EQ(0, ::flock(lock, LOCK_EX));
    verbs::sweep_trees(place_);
    EXPECT_EQ(1u, names().size());
    ::close(lock);
    verbs::sweep_trees(place_);
    EXPECT_TRUE(names().empty());
}

TEST_F(Tree, WhoseProcessNumberIsAnothersIsSwept)
{
    std::ofstream(make_folder(name_of(::getppid())) / "lock");
    verbs::sweep_trees(place_);
    EXPECT_TRUE(names().empty());
}

/// The more often the better, so it is in memory.
TEST_F(Tree, IsMadeWhileOthersSweep)
{
    std::string place = (verbs::default_parents().front() / "weftio-trees.XXXXXX").string();
    ASSERT_NE(nullptr, ::mkdtemp(place.data()));
    std::atomic<bool> ended = false;
    std::thread sweeper([&] {
        while (!ended)
            verbs::sweep_trees(place);
    });
    for (int round = 0; round != 2000; ++round)
        EXPECT_NO_THROW({
            const tree made({}, {place});
            EXPECT_TRUE(fs::exists(made.path()));
        });
    ended = true;
    sweeper.join();
    fs::remove_all(place);
}

TEST_F(Tree, WhoseProcessHasLeftAChildIsSwept)
{
    int stop[2];
    ASSERT_EQ(0, ::pipe(stop));
    const pid_t child = ::fork();
    if (child == 0) {
        new tree(two_devices(), {place_});
        char byte;
        if (::fork() == 0) {
            ::close(stop[1]);
            ::_exit(static_cast<int>(::read(stop[0], &byte, 1)));
        }
        ::_exit(0);
    }
    ::waitpid(child, nullptr, 0);
    verbs::sweep_trees(place_);
    EXPECT_TRUE(names().empty());
    ::close(stop[1]);
    ::close(stop[0]);
}

TEST_F(Tree, ThatIsBeingMadeStays)
{
    const fs::path folder = make_folder(name_of(dead_process()));
    verbs::sweep_trees(place_);
    EXPECT_EQ(1u, names().size());
    fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::minutes(2));
    verbs::sweep_trees(place_);
    EXPECT_TRUE(names().empty());
}

TEST_F(Tree, SweepsNothingElse)
{
    const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
    const std::string dead = std::to_string(dead_process());
    for (const char* name : {"weftio-run-", "weftio-run-x-abcdef", "weftio-run-0-abcdef", "weftio-run--1-abcdef",
                             "weftio-walk-1-abcdef", "weftio-run-1"})
        fs::last_write_time(make_folder(name), old);
    std::ofstream(place_ / ("weftio-run-" + dead + "-file"));
    const fs::path elsewhere = make_folder("elsewhere");
    fs::create_directory_symlink(elsewhere, place_ / ("weftio-run-" + dead + "-link"));
    verbs::sweep_trees(place_);
    EXPECT_EQ(9u, names().size());
    verbs::sweep_trees(place_ / "none");
}

} // namespace
} // namespace weftio::test
