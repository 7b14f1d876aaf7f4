// `weftio-files --check` on recorded machines, and its command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "check.hpp"
#include "options.hpp"
#include "recorded.hpp"
#include "weftio/error.hpp"

namespace weftio::files {

namespace {

using storage::recorded_machine;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two GPUs, a NIC in the tree of the first, a drive; ext4 on the drive and NFS over the NIC.
class RecordedCheck : public ::testing::Test {
 protected:
    RecordedCheck()
    {
        machine_.file("proc/sys/kernel/osrelease", "6.8.0-51-generic\n").file("proc/sys/kernel/arch", "x86_64\n");
        machine_.file("proc/kallsyms", "0000 d p2pdma_pgmap_ops\n");
        machine_.file("proc/driver/nvidia/version",
                      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release\n");
        machine_.file("proc/self/mountinfo", "22 1 259:0 / / rw - ext4 /dev/nvme0n1 rw\n"
                                             "23 22 0:21 / /proc rw - proc proc rw\n"
                                             "24 22 0:51 / /mnt rw - nfs4 10.0.0.1:/x rw,proto=rdma\n");
        machine_.pci("pci0000:00/0000:00:01.0/0000:01:00.0", "0x10de", "0x030200", 0);
        machine_.file("sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/resource",
                      "0x0 0x0 0x0\n0x0000010000000000 0x00000101ffffffff 0x14220c\n");
        machine_.pci("pci0000:80/0000:80:01.0/0000:81:00.0", "0x10de", "0x030200", 1);
        machine_.link("sys/class/net/ib0", "sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0/net/ib0");
        const std::string drive = "sys/devices/pci0000:80/0000:80:02.0/0000:82:00.0/nvme/nvme0/nvme0n1";
        machine_.pci("pci0000:80/0000:80:02.0/0000:82:00.0", "0x144d", "0x010802", 1);
        machine_.link("sys/class/block/nvme0n1", drive).link("sys/dev/block/259:0", drive);
        options_.root = machine_.root();
        options_.configuration = machine_.root() / "cufile.json";
        machine_.file("cufile.json", R"({"properties": {"rdma_dynamic_routing": true, "nonsense": 1},
            "fs": {"nfs4": {"mount_table": {"/mnt": {"rdma_dev_addr_list": ["10.0.0.7"]}}}}})");
    }

    std::string text() { return to_text(check(options_)); }

    recorded_machine machine_;
    check_options options_;
};

TEST_F(RecordedCheck, HasTheSectionsOfGdscheckInTheirOrder)
{
    std::vector<std::string> titles;
    for (const section& it : check(options_))
        titles.push_back(it.title);
    EXPECT_THAT(titles, ElementsAre("ENVIRONMENT", "DRIVER CONFIGURATION", "CUFILE CONFIGURATION", "GPU INFO",
                                    "PLATFORM", "ROUTING", "GPUDIRECT RDMA"));
}

TEST_F(RecordedCheck, NamesEachRequirementOnceForTheMachineAndItsStateForEachMount)
{
    const auto driver = check(options_)[1];
    ASSERT_EQ(driver.groups.size(), 3u) << "the machine, / and /mnt; /proc is no storage";
    EXPECT_EQ(driver.groups[1].title, "/ : ext4 on nvme0n1");
    EXPECT_EQ(driver.groups[2].title, "/mnt : nfs4 on 10.0.0.1:/x");
    std::vector<std::string> names;
    for (const finding& it : driver.groups[0].findings) {
        names.push_back(it.name);
        EXPECT_EQ(it.remedy.empty(), it.state == "present") << it.name;
    }
    EXPECT_THAT(names,
                ElementsAre("NVIDIA driver", "NVIDIA driver 570 or later (CUDA 12.8)", "open kernel modules",
                            "static BAR1", "kernel 6.2 or later", "PCI P2PDMA in the kernel", "x86_64",
                            "IOMMU off or in passthrough", "nvidia-fs.ko", "/run/udev", "io_uring reads into dma-buf"));
    EXPECT_EQ(driver.groups[1].findings[0].found, "Unsupported: static BAR1");
    EXPECT_EQ(driver.groups[2].findings[0].name, "direct by PCI P2PDMA");
}

TEST_F(RecordedCheck, TellsTheConfigurationAndWhatIsWrongInIt)
{
    const std::string said = text();
    EXPECT_THAT(said, HasSubstr("properties.rdma_dynamic_routing            : 1\n"));
    EXPECT_THAT(said, HasSubstr("rdma_dynamic_routing_order      : GPU_MEM_NVLINKS GPU_MEM SYS_MEM P2P\n"));
    EXPECT_THAT(said, HasSubstr("/mnt dev_id 0:51                           : 10.0.0.7\n"));
    EXPECT_THAT(said, HasSubstr("properties.nonsense: unknown key"));
    machine_.file("cufile.json", "{\"properties\": {\"use_poll_mode\": 3}}");
    EXPECT_THROW(check(options_), error);
}

TEST_F(RecordedCheck, TellsGpusAndTheirBar1)
{
    EXPECT_THAT(text(), HasSubstr("0000:01:00.0 BAR1 8192 MiB (used and free: unknown), NUMA node 0\n"));
    EXPECT_THAT(text(), HasSubstr("0000:81:00.0 BAR1 unknown, NUMA node 1\n"));
    options_.bar1_use = [](const std::string& address) {
        return address == "0000:81:00.0" ? std::optional(devices::cuda::bar1_use{1u << 28, 200u << 20}) : std::nullopt;
    };
    EXPECT_THAT(text(), HasSubstr("0000:01:00.0 BAR1 8192 MiB (used and free: unknown), NUMA node 0\n"));
    EXPECT_THAT(text(), HasSubstr("0000:81:00.0 BAR1 256 MiB (56 used, 200 free), NUMA node 1\n"));
}

/// Of the lines of section GPUDIRECT RDMA, the one that begins so.
std::string line_of(const std::string& text, const std::string& begin)
{
    std::istringstream lines(text.substr(text.find("GPUDIRECT RDMA")));
    for (std::string line; std::getline(lines, line);)
        if (const std::size_t first = line.find_first_not_of(' '); line.compare(first, begin.size(), begin) == 0)
            return line;
    return "no such line";
}

/// A NIC below the switch of the first GPU, one below its root complex, one of the same socket, one of another.
TEST_F(RecordedCheck, RanksThePathsOfGpusAndNics)
{
    const auto nic = [&](const std::string& name, const std::string& path, int numa) {
        machine_.pci(path, "0x15b3", "0x020000", numa)
            .link("sys/class/infiniband/" + name, "sys/devices/" + path + "/infiniband/" + name);
    };
    nic("below", "pci0000:00/0000:00:01.0/0000:03:00.0", 0);
    nic("beside", "pci0000:00/0000:00:02.0/0000:04:00.0", 0);
    nic("near", "pci0000:40/0000:40:01.0/0000:41:00.0", 2);
    nic("remote", "pci0000:c0/0000:c0:01.0/0000:c1:00.0", 3);
    for (int node = 0; node < 4; ++node) {
        const std::string cpu = std::to_string(8 * node), socket = node == 3 || node == 1 ? "1" : "0";
        machine_.file("sys/devices/system/node/node" + std::to_string(node) + "/cpulist", cpu + "-" + cpu + "\n");
        machine_.file("sys/devices/system/cpu/cpu" + cpu + "/topology/physical_package_id", socket + "\n");
    }
    const std::string said = text();
    EXPECT_THAT(line_of(said, "gpu0 below"), HasSubstr("switches only: the best path"));
    EXPECT_THAT(line_of(said, "gpu0 beside"), HasSubstr("through one root complex: works"));
    EXPECT_THAT(line_of(said, "gpu0 near"), HasSubstr("through two root complexes of one socket: works"));
    EXPECT_THAT(line_of(said, "gpu0 remote"), HasSubstr("across sockets: slow, and may not work reliably; to do:"));
    EXPECT_THAT(line_of(said, "gpu1 remote"), HasSubstr("of one socket"));
    EXPECT_THAT(line_of(said, "gpu1 below"), HasSubstr("across sockets"));
}

TEST_F(RecordedCheck, SaysWhenSocketsAreUnknown)
{
    machine_.pci("pci0000:40/0000:40:01.0/0000:41:00.0", "0x15b3", "0x020000", -1)
        .link("sys/class/infiniband/nic", "sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/infiniband/nic");
    EXPECT_THAT(line_of(text(), "gpu0 nic"), HasSubstr("unknown  through two root complexes; /sys does not say"));
    machine_.pci("pci0000:a0/0000:a0:01.0/0000:a1:00.0", "0x10de", "0x030200", -1);
    EXPECT_THAT(line_of(text(), "gpu2 nic"), HasSubstr("unknown  through two root complexes"));
}

TEST_F(RecordedCheck, TellsModulesAndTheirConflict)
{
    EXPECT_THAT(line_of(text(), "nvidia-peermem"),
                HasSubstr("missing  not loaded; registering by dma-buf needs no module"));
    EXPECT_THAT(line_of(text(), "nv_peer_mem"), HasSubstr("not loaded, as it should be"));
    EXPECT_THAT(line_of(text(), "GDRCopy"), HasSubstr("gdrdrv is not loaded; Weftio does not use GDRCopy"));
    EXPECT_THAT(line_of(text(), "Tegra"), HasSubstr("no such line"));
    machine_.file("proc/modules", "nvidia_peermem 16384 0 - Live 0x0\nib_core 1 2 nvidia_peermem, Live 0x0\n");
    EXPECT_THAT(line_of(text(), "nvidia-peermem"), HasSubstr("present  loaded"));
    EXPECT_THAT(line_of(text(), "nv_peer_mem"), HasSubstr("not loaded, as it should be"));
    machine_.file("proc/modules", "nv_peer_mem 16384 0 - Live 0x0\ngdrdrv 24576 0 - Live 0x0\n");
    EXPECT_THAT(line_of(text(), "nvidia-peermem"), HasSubstr("missing"));
    EXPECT_THAT(line_of(text(), "nv_peer_mem"), HasSubstr("loaded: the module before nvidia-peermem; to do: to use"));
    EXPECT_THAT(line_of(text(), "GDRCopy"), HasSubstr("gdrdrv is loaded; Weftio does not use GDRCopy"));
    machine_.file("proc/modules", "nv_peer_mem 16384 0 - Live 0x0\nnvidia_peermem 16384 0 - Live 0x0\n");
    EXPECT_THAT(line_of(text(), "nv_peer_mem"), HasSubstr("conflict loaded beside nvidia-peermem"));
    EXPECT_THAT(line_of(text(), "nv_peer_mem"), HasSubstr("rmmod nv_peer_mem"));
}

TEST_F(RecordedCheck, KnowsATegra)
{
    machine_.file("proc/device-tree/compatible", std::string("nvidia,p3737-0000\0nvidia,tegra234\0", 33));
    EXPECT_THAT(line_of(text(), "Tegra"), HasSubstr("memory of the host is the path of NICs here"));
}

TEST_F(RecordedCheck, DecidesRoutesByARecordedTopology)
{
    machine_.file(
        "trees", "root a numa 0\n  port b\n    gpu gpu0 pci 0000:01:00.0\n    nic ib0 ip 10.0.0.7\nroot c\n  gpu gpu1\n"
                 "nvlink gpu0 gpu1\n");
    options_.topology = machine_.root() / "trees";
    options_.paths = {"/mnt/x"};
    const section routing = check(options_)[5];
    ASSERT_EQ(routing.groups.size(), 1u);
    const auto& found = routing.groups[0].findings;
    ASSERT_EQ(found.size(), 4u);
    EXPECT_THAT(found[0].found, HasSubstr("both are in the PCIe tree of b"));
    EXPECT_EQ(found[1].name, "gpu0 by direct, not in this build");
    EXPECT_EQ(found[1].found, "straight: ib0 and gpu0 share a PCIe tree; staged (above_bar1) if more than 8192 MiB are "
                              "registered");
    EXPECT_EQ(found[2].found, "GPU_MEM_NVLINKS: memory of gpu0 in the PCIe tree of ib0, then NVLink to gpu1");
    EXPECT_EQ(found[3].found, "staged (better_staged): the route stages by GPU_MEM_NVLINKS");
}

TEST_F(RecordedCheck, RoutesTheDrivesOfALocalFileSystem)
{
    options_.paths = {"/etc"};
    EXPECT_THAT(check(options_)[5].groups[0].findings[0].found,
                HasSubstr("SYS_MEM: pinned host memory of NUMA node 1 near nvme0n1"));
}

TEST_F(RecordedCheck, SaysThatDirectIsNotJudgedWithoutADevice)
{
    options_.paths = {"/mnt/x"}; // its NIC has no address here
    EXPECT_EQ(check(options_)[5].groups[0].findings[1].found, "unknown: no known storage device on PCIe");
}

TEST_F(RecordedCheck, OfAnEmptyMachineSaysWhatIsUnknown)
{
    recorded_machine nothing;
    const std::string said = to_text(check({.root = nothing.root()}));
    EXPECT_THAT(said, HasSubstr("/sys has no devices; to do: make /sys readable, or give --topology FILE"));
    EXPECT_THAT(said, HasSubstr("unknown  unknown; to do: make /proc/kallsyms readable"));
    options_.root = nothing.root();
    options_.paths = {"/x"};
    EXPECT_THROW(check(options_), error);
    options_.paths.clear();
    options_.topology = nothing.root() / "none";
    EXPECT_THROW(check(options_), error);
}

TEST(LiveCheck, TriesODirectAndNamesTheMountOfAPath)
{
    recorded_machine folder;
    const auto found = check({.paths = {folder.root()}});
    ASSERT_EQ(found[1].groups.size(), 2u);
    EXPECT_THROW(check({.paths = {folder.root() / "none"}}), error);
}

TEST(Report, IsOneLineForEachFindingAndLegalJson)
{
    const std::vector<section> made{
        {"A", {{"/a\nb", {{"n", "missing", "f\x1b", "do \"it\""}, {"m", "", "v", ""}}, ""}}}};
    const std::string text = to_text(made);
    EXPECT_THAT(text, HasSubstr("n                                          missing  f\\x1b; to do: do \"it\"\n"));
    EXPECT_THAT(to_json(made), HasSubstr("\"to_do\": \"do \\\"it\\\"\""));
    EXPECT_THAT(to_json({{"A", {{"\xff", {}, "t"}}}}), HasSubstr("\"text\": \"t\"")) << "no UTF-8";
}

command parsed(std::vector<const char*> words)
{
    words.insert(words.begin(), "weftio-files");
    return parse_command_line(static_cast<int>(words.size()), words.data());
}

TEST(CommandLine, KnowsItsThreeActions)
{
    EXPECT_THAT(parsed({"--check", "/a", "/b", "--json"}).check.paths, ElementsAre("/a", "/b"));
    EXPECT_EQ(parsed({"--stats", "12"}).process, 12u);
    const command bench = parsed({"bench", "-b", "4k,1m", "--random", "--mixed", "-w", "2", "--way", "posix", "f"});
    EXPECT_EQ(bench.what, command::action::bench);
    EXPECT_THAT(bench.bench.sizes, ElementsAre(4096u, 1u << 20));
    EXPECT_EQ(bench.bench.only, file_way::posix);
    EXPECT_EQ(bench.bench.path, "f");
    EXPECT_EQ(bench.bench.file_bytes, 0u);
    EXPECT_EQ(parsed({"bench", "-b", "1g", "f"}).bench.sizes.front(), 1u << 30); // how large f is will be seen
    EXPECT_EQ(parsed({"--help"}).exit_code, 0);
    EXPECT_THAT(parsed({"-V"}).text, HasSubstr("weftio-files "));
}

TEST(CommandLine, RefusesInOneSentence)
{
    for (const std::vector<const char*>& words :
         std::vector<std::vector<const char*>>{{},
                                               {"x"},
                                               {"--chek"},
                                               {"--check", "--stats", "1"},
                                               {"--stats"},
                                               {"--stats", "x"},
                                               {"--stats", "0"},
                                               {"--stats", "99999999999"},
                                               {"bench", "a", "b"},
                                               {"bench", "-b", "1q"},
                                               {"bench", "-b", "4k,"},
                                               {"bench", "-b", "0"},
                                               {"bench", "-s", "1k"},
                                               {"bench", "-w", "0"},
                                               {"bench", "--read", "--write"},
                                               {"bench", "--way", "direct"},
                                               {"bench", "--direct", "-b", "5000"},
                                               {"bench", "--seconds", "0"},
                                               {"bench", "-b", "99999999999g"},
                                               {"bench", "--check"}}) {
        const command made = parsed(words);
        EXPECT_EQ(made.exit_code, 1) << (words.empty() ? "nothing" : words.back());
        EXPECT_THAT(made.text, testing::MatchesRegex("weftio-files: [^\n]*\nRun with --help for usage.\n"));
    }
}

TEST(CommandLine, HelpFitsAScreenAndHasEveryOption)
{
    std::istringstream help{std::string(help_text())};
    int lines = 0;
    for (std::string line; std::getline(help, line); ++lines)
        EXPECT_LE(line.size(), 100u) << line;
    EXPECT_LE(lines, 40);
    for (const char* option : {"--check",     "--stats",   "--config", "--topology", "--root",  "--workers", "--size",
                               "--file-size", "--seconds", "--read",   "--write",    "--mixed", "--random",  "--direct",
                               "--verify",    "--way",     "--device", "--json",     "--help",  "--version"})
        EXPECT_NE(help_text().find(option), std::string_view::npos) << option;
}

} // namespace

} // namespace weftio::files
