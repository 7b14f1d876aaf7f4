// weftio-gpu-bench --topology on recorded machines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/topology.hpp"
#include "recorded.hpp"
#include "weftio/error.hpp"

namespace weftio::storage {
namespace {

using bench::describe_topology;
using bench::driver_facts;
using testing::HasSubstr;

constexpr const char *gpu_0 = "pci0000:00/0000:00:01.0/0000:02:00.0/0000:03:00.0",
                     *gpu_1 = "pci0000:00/0000:00:01.0/0000:02:00.0/0000:04:00.0",
                     *gpu_2 = "pci0000:80/0000:80:01.0/0000:81:00.0", *nic = "pci0000:00/0000:00:02.0/0000:05:00.0";

/// Little-endian configuration space with an extended capability at 0x100, and ACS with `control` at 0x140.
std::string configuration(unsigned control)
{
    std::string bytes(4096, '\0');
    auto put = [&](std::size_t at, unsigned word) {
        bytes[at] = static_cast<char>(word);
        bytes[at + 1] = static_cast<char>(word >> 8);
    };
    put(0x100, 0x0001); // advanced error reporting
    put(0x102, 0x140 << 4 | 2);
    put(0x140, 0x000d);
    put(0x142, 1);
    put(0x146, control);
    return bytes;
}

class GpuTopology : public testing::Test {
 protected:
    GpuTopology()
    {
        for (const auto& [path, numa] : {std::pair{gpu_0, 0}, std::pair{gpu_1, 0}, std::pair{gpu_2, 1}})
            machine.pci(path, "0x10de", "0x030200", numa);
        machine.pci(nic, "0x15b3", "0x020000", 0)
            .link("sys/class/net/eth5", std::string("sys/devices/") + nic + "/net/eth5");
        machine.file("sys/devices/system/node/node0/cpulist", "0-15\n");
        machine.file("sys/devices/system/node/node1/cpulist", "16-31\n");
        machine.file("sys/devices/system/node/node2/cpulist", "\n"); // memory alone
        for (const char* bridge : {"0000:00:01.0", "0000:00:02.0", "0000:80:01.0"})
            machine.link(std::string("sys/bus/pci/devices/") + bridge,
                         std::string("sys/devices/pci0000:") + (bridge[5] == '8' ? "80/" : "00/") + bridge);
        machine.link("sys/bus/pci/devices/0000:02:00.0", "sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0");
        machine.file("sys/module/nvidia/version", "580");
    }
    std::string text(const driver_facts& driver = {}) const
    {
        topology trees = read_topology(machine.root(), {});
        trees.connect(*trees.find("gpu0"), *trees.find("gpu2"));
        return describe_topology(machine.root(), trees, driver);
    }
    recorded_machine& device_file(const std::string& path, const std::string& name, const std::string& content)
    {
        return machine.file("sys/devices/" + path + '/' + name, content);
    }

    recorded_machine machine;
};

TEST_F(GpuTopology, NamesTheDistanceOfEachGpuFromTheOthersAndFromPortsAndCores)
{
    const std::string all = text();
    EXPECT_THAT(all, HasSubstr("  gpu0 0000:03:00.0, NUMA node 0\n"
                               "    gpu1: no NVLink; PCIe: one switch\n"
                               "    gpu2: NVLink; PCIe: different NUMA nodes (on two H200, "));
    EXPECT_THAT(all, HasSubstr("    port eth5 0000:05:00.0: PCIe: one root complex, no port in common\n"
                               "    cores 0-15 (NUMA node 0): same NUMA node\n"
                               "    cores 16-31 (NUMA node 1): different NUMA nodes\n"));
    EXPECT_THAT(all, testing::Not(HasSubstr("NUMA node 2")));
}

TEST_F(GpuTopology, ReadsWhetherAnIommuTranslates)
{
    device_file(gpu_0, "iommu_group/type", "DMA-FQ\n");
    device_file(gpu_1, "iommu_group/type", "identity\n");
    device_file(nic, "iommu_group/empty", "");
    const std::string all = text();
    EXPECT_THAT(all, HasSubstr("gpu0 IOMMU: translates (DMA-FQ): a peer's accesses go through it; boot with iommu=pt"));
    EXPECT_THAT(all, HasSubstr("gpu1 IOMMU: passthrough\n"));
    EXPECT_THAT(all, HasSubstr("gpu2 IOMMU: none\n"));
    EXPECT_THAT(all, HasSubstr("port eth5 IOMMU: unknown: iommu_group/type cannot be read\n"));
}

TEST_F(GpuTopology, ReadsWhetherBridgesRedirect)
{
    device_file("pci0000:00/0000:00:01.0", "config", configuration(0x1d)); // SV, RR, CR, UF
    device_file("pci0000:00/0000:00:01.0/0000:02:00.0", "config", configuration(0x51));
    device_file("pci0000:00/0000:00:02.0", "config", std::string(64, '\0'));
    const std::string all = text();
    EXPECT_THAT(all, HasSubstr("port 0000:00:01.0 ACS: redirects: "));
    EXPECT_THAT(all, HasSubstr("switch 0000:02:00.0 ACS: does not redirect\n"));
    EXPECT_THAT(all,
                HasSubstr("port 0000:00:02.0 ACS: unknown: its extended configuration space can be read by root "));
    EXPECT_THAT(all, HasSubstr("port 0000:80:01.0 ACS: unknown: its configuration space cannot be read\n"));
}

TEST_F(GpuTopology, EndsAtAnyConfigurationSpace)
{
    std::string bytes = configuration(0);
    bytes[0x140] = 5; // no ACS
    device_file("pci0000:00/0000:00:01.0", "config", bytes);
    bytes[0x142] = 1, bytes[0x143] = 0x10; // a circle
    device_file("pci0000:00/0000:00:02.0", "config", bytes);
    bytes[0x102] = static_cast<char>(0xf2), bytes[0x103] = static_cast<char>(0xff); // past the end
    device_file("pci0000:80/0000:80:01.0", "config", bytes);
    const std::string all = text();
    for (const char* bridge : {"0000:00:01.0", "0000:00:02.0", "0000:80:01.0"})
        EXPECT_THAT(all, HasSubstr(std::string("port ") + bridge + " ACS: none\n"));
}

TEST_F(GpuTopology, TellsWhatTheDriverSaysOrWhyItSaysNothing)
{
    device_file(gpu_0, "resource", "0x0 0x3fffffffff 0x14220c\n");
    std::string all = text({.gpus = {}, .no_management = "no library", .no_cuda = "no driver"});
    EXPECT_THAT(all, HasSubstr("gpu0 BAR1: 262144 MiB, used unknown: no library\n"));
    EXPECT_THAT(all, HasSubstr("gpu1 BAR1: unknown: its file resource cannot be read, used unknown: no library\n"));
    EXPECT_THAT(all, HasSubstr("gpu0 memory for NICs: nvidia-peermem not loaded, dma-buf unknown: no driver\n"));
    EXPECT_THAT(all, HasSubstr("gpu0 persistence mode: unknown: no library\n"));
    EXPECT_THAT(all, HasSubstr("gpu1: NVLink unknown (no library); "));

    driver_facts driver;
    driver.gpus["0000:03:00.0"] = {1u << 30, 1u << 24, true, true, 18};
    driver.gpus["0000:04:00.0"] = {.persistence = false, .dma_buf = false};
    all = text(driver);
    EXPECT_THAT(all, HasSubstr("gpu0 BAR1: 1024 MiB, used 16 MiB\n"));
    EXPECT_THAT(all, HasSubstr("gpu0 memory for NICs: nvidia-peermem not loaded, dma-buf supported\n"));
    EXPECT_THAT(all, HasSubstr("gpu0 persistence mode: on\n"));
    EXPECT_THAT(all, HasSubstr("gpu0 NVLinks: 18\n"));
    EXPECT_THAT(all,
                HasSubstr("gpu1 memory for NICs: nvidia-peermem not loaded, dma-buf not supported: a NIC cannot "));
    EXPECT_THAT(all, HasSubstr("gpu1 persistence mode: off: "));
    EXPECT_THAT(all, HasSubstr("gpu2 persistence mode: unknown: the driver does not say it\n"));
    machine.file("sys/module/nvidia_peermem/initstate", "live");
    EXPECT_THAT(text(driver), HasSubstr("gpu1 memory for NICs: nvidia-peermem loaded, dma-buf not supported\n"));
}

TEST(GpuTopologyOfLittle, SaysWhatIsMissing)
{
    recorded_machine machine;
    machine.file("sys/empty", "");
    EXPECT_THAT(bench::describe_machine(machine.root()),
                testing::AllOf(HasSubstr("no GPU on PCIe"), HasSubstr("no port on PCIe"), HasSubstr("cores unknown")));
    EXPECT_THAT([&] { bench::describe_machine(machine.root() / "none"); },
                testing::ThrowsMessage<error>(HasSubstr("it has no folder sys; name a folder that has one")));
}

} // namespace
} // namespace weftio::storage
