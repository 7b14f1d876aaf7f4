// Trees of PCIe: their text form, and as they are read from /sys.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "recorded.hpp"
#include "storage/topology.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {

namespace {

using ::testing::HasSubstr;

constexpr std::string_view two_sockets = R"(root pci0000:00 numa 0
  port 0000:00:01.0
    switch 0000:01:00.0
      switch 0000:02:00.0
        gpu gpu0 pci 0000:03:00.0
        nic mlx5_0 pci 0000:04:00.0 ip 172.172.1.40 ip fd00::1
      switch 0000:02:01.0
        gpu gpu1 pci 0000:05:00.0
  port 0000:00:02.0
    drive nvme0n1 pci 0000:06:00.0
root pci0000:80 numa 1
  gpu gpu2 pci 0000:80:04.0 numa 3
nvlink gpu0 gpu2
)";

std::size_t at(const topology& in, std::string_view name)
{
    return in.find(name).value();
}

TEST(Topology, WritesWhatItReads)
{
    EXPECT_EQ(to_text(parse_topology(two_sockets, "dgx")), two_sockets);
}

TEST(Topology, ReadsWhatCheckPrints)
{
    std::string printed = "PLATFORM\n";
    std::istringstream lines{std::string(two_sockets)};
    for (std::string line; std::getline(lines, line);)
        printed += "  " + line + "\n";
    EXPECT_EQ(to_text(parse_topology(printed, "dgx")), two_sockets);
    EXPECT_THROW(parse_topology("  root a\nroot b\n", "dgx"), error);
}

TEST(Topology, FindsNodesByNamePciAndIpAddress)
{
    const topology in = parse_topology(two_sockets, "dgx");
    EXPECT_EQ(at(in, "mlx5_0"), at(in, "0000:04:00.0"));
    EXPECT_EQ(at(in, "mlx5_0"), at(in, "fd00::1"));
    EXPECT_FALSE(in.find("10.0.0.1"));
    EXPECT_FALSE(in.find(""));
}

TEST(Topology, ATreeIsWhatIsBelowOneRootPort)
{
    const topology in = parse_topology(two_sockets, "dgx");
    EXPECT_TRUE(in.share_tree(at(in, "gpu0"), at(in, "mlx5_0")));
    EXPECT_TRUE(in.share_tree(at(in, "gpu0"), at(in, "gpu1"))) << "two switches below one port";
    EXPECT_FALSE(in.share_tree(at(in, "gpu0"), at(in, "nvme0n1"))) << "two ports of one root complex";
    EXPECT_FALSE(in.share_tree(at(in, "gpu0"), at(in, "gpu2")));
    EXPECT_EQ(in.common(at(in, "gpu0"), at(in, "mlx5_0")), 4u);
    EXPECT_EQ(in.common(at(in, "gpu1"), at(in, "mlx5_0")), 3u);
    EXPECT_EQ(in.nodes()[in.tree_of(at(in, "gpu1"))].name, "0000:00:01.0");
}

TEST(Topology, NumaNodesComeFromTheNearestAncestor)
{
    const topology in = parse_topology(two_sockets, "dgx");
    EXPECT_EQ(in.numa_of(at(in, "mlx5_0")), 0);
    EXPECT_EQ(in.numa_of(at(in, "gpu2")), 3);
}

TEST(Topology, NvlinksHaveNoDirection)
{
    const topology in = parse_topology(two_sockets, "dgx");
    EXPECT_TRUE(in.has_nvlink(at(in, "gpu2"), at(in, "gpu0")));
    EXPECT_FALSE(in.has_nvlink(at(in, "gpu0"), at(in, "gpu1")));
}

TEST(Topology, TellsTheLineThatItDoesNotUnderstand)
{
    struct refused {
        std::string text, why;
    };
    for (const auto& [text, why] :
         {refused{"cpu 0", "f:1: cpu: is unknown"}, refused{"root", "f:1: root: has no name"},
          refused{"# two\n\ngpu g", "f:3: gpu: has the wrong indentation"},
          refused{"root a\n    gpu g", "f:2: gpu: has the wrong indentation"},
          refused{"root a\n   gpu g", "f:2: gpu: has the wrong indentation"},
          refused{"root a\nroot a", "f:2: a: is defined twice"},
          refused{"root a\n  gpu g\n    nic n", "f:3: n: is below a device"},
          refused{"root a numa x", "f:1: numa x: write pci ADDRESS"}, refused{"root a numa", "f:1: numa: has no value"},
          refused{"root a\n  nic n\nnvlink n n", "f:3: n: is not a GPU"},
          refused{"root a\n  gpu g\nnvlink g g", "f:3: nvlink: needs two different GPUs"},
          refused{"root a\n  gpu g\nnvlink g", "f:3: nvlink: needs two different GPUs"}})
        try {
            parse_topology(text, "f");
            ADD_FAILURE() << text;
        } catch (const error& thrown) {
            EXPECT_THAT(thrown.what(), HasSubstr("weftio: " + why));
        }
}

TEST(Topology, IsReadFromSys)
{
    recorded_machine machine;
    const std::string port = "pci0000:00/0000:00:01.0", other = "pci0000:80/0000:80:00.0";
    machine.pci(port, "0x8086", "0x060400", 0).pci(port + "/0000:01:00.0", "0x1000", "0x060400", 0);
    machine.pci(port + "/0000:01:00.0/0000:03:00.0", "0x10de", "0x030200", 0);
    machine.pci(port + "/0000:01:00.0/0000:04:00.0", "0x15b3", "0x020700", 0);
    machine.link("sys/class/infiniband/mlx5_0", "sys/devices/" + port + "/0000:01:00.0/0000:04:00.0/infiniband/mlx5_0");
    machine.link("sys/class/net/ib0", "sys/devices/" + port + "/0000:01:00.0/0000:04:00.0/net/ib0");
    machine.link("sys/class/net/lo", "sys/devices/virtual/net/lo");
    machine.pci(other, "0x144d", "0x010802", 1).pci("pci0000:80/0000:80:02.0", "0x1234", "0x030000", 1);
    machine.link("sys/class/block/nvme0n1", "sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1");
    machine.link("sys/class/block/nvme0c0n1", "sys/devices/" + other + "/nvme/nvme0/nvme0c0n1");
    machine.file("sys/devices/" + other + "/nvme/nvme0/nvme0c0n1/nvme0c0n1p1/partition", "1");
    machine.link("sys/class/block/nvme0c0n1p1", "sys/devices/" + other + "/nvme/nvme0/nvme0c0n1/nvme0c0n1p1");
    EXPECT_EQ(to_text(read_topology(machine.root(), {{"ib0", {"10.0.0.2"}}, {"lo", {"127.0.0.1"}}})),
              "root pci0000:00\n"
              "  port 0000:00:01.0\n"
              "    switch 0000:01:00.0\n"
              "      gpu gpu0 pci 0000:03:00.0 numa 0\n"
              "      nic mlx5_0 pci 0000:04:00.0 ip 10.0.0.2 numa 0\n"
              "root pci0000:80\n"
              "  drive nvme0n1 pci 0000:80:00.0 numa 1\n");
}

TEST(Topology, NamesBothPathsToAMultipathDrive)
{
    recorded_machine machine;
    for (const std::string path : {"0", "1"}) {
        const std::string device = "pci0000:80/0000:80:0" + path + ".0";
        machine.pci(device, "0x144d", "0x010802", 1);
        machine.link("sys/class/block/nvme0c" + path + "n1", "sys/devices/" + device + "/nvme/nvme0");
    }
    EXPECT_EQ(to_text(read_topology(machine.root(), {})), "root pci0000:80\n"
                                                          "  drive nvme0n1 pci 0000:80:00.0 numa 1\n"
                                                          "  drive nvme0n1@0000:80:01.0 pci 0000:80:01.0 numa 1\n");
}

TEST(Topology, OfAMachineWithoutSysIsEmpty)
{
    recorded_machine machine;
    EXPECT_EQ(to_text(read_topology(machine.root(), {})), "");
}

TEST(Topology, TellsWhyNvlinksAreUnknown)
{
    topology in = parse_topology(two_sockets, "dgx");
    const std::string why = add_nvlinks(in);
    if (void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
        ::dlclose(library);
        GTEST_SKIP() << "NVIDIA's driver is here";
    }
    EXPECT_EQ(why, "libnvidia-ml.so.1 cannot be loaded");
    EXPECT_EQ(to_text(in), two_sockets);
    topology one = parse_topology("root a\n  gpu g\n", "one");
    EXPECT_EQ(add_nvlinks(one), "") << "one GPU has no links to others";
}

TEST(Topology, OfThisMachineCanBeReadBack)
{
    const std::string text = to_text(read_topology("/", addresses_of_interfaces()));
    EXPECT_EQ(to_text(parse_topology(text, "this machine")), text);
}

} // namespace

} // namespace weftio::storage
