// Dynamic routing: each row of table 1 of the vendor's guide (section 3.6) on a recorded topology.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "devices/cuda/bar1.hpp"
#include "recorded.hpp"
#include "storage/direct_route.hpp"
#include "storage/routing.hpp"

namespace weftio::storage {

namespace {

using ::testing::HasSubstr;
using enum routing_policy;

/// gpu0 and gpu1 in the tree of the NIC, gpu2 in another, and another NIC without a GPU in its tree.
constexpr std::string_view trees = R"(root pci0000:00 numa 0
  port 0000:00:01.0
    switch 0000:01:00.0
      gpu gpu1 pci 0000:03:00.0
      switch 0000:02:00.0
        gpu gpu0 pci 0000:05:00.0
        nic mlx5_0 pci 0000:04:00.0 ip 172.172.1.40
root pci0000:80 numa 1
  port 0000:80:01.0
    gpu gpu2 pci 0000:81:00.0
  port 0000:80:02.0
    nic mlx5_1 pci 0000:82:00.0 ip 172.172.2.40
  port 0000:80:03.0
    drive nvme0n1 pci 0000:83:00.0
)";

constexpr std::string_view with_nvlinks = "nvlink gpu0 gpu2\nnvlink gpu1 gpu2\nnvlink gpu0 gpu1\n";

struct row {
    const char* name;
    bool nvlinks;
    const char* device;
    const char* gpu;
    std::vector<routing_policy> order;
    bool dynamic;
    routing_policy policy;
    const char* staging_gpu; ///< "": none
    const char* reason;
};

std::ostream& operator<<(std::ostream& to, const row& it)
{
    return to << it.name;
}

/// Judged for 1 MiB and a BAR1 of 256 MiB.
struct direct_row {
    const char* name;
    const char* device;
    const char* gpu;
    bool dynamic;
    std::vector<routing_policy> order;
    file_fall fall;
    const char* why;
};

std::ostream& operator<<(std::ostream& to, const direct_row& it)
{
    return to << it.name;
}

class DirectRoute : public ::testing::TestWithParam<direct_row> {};

TEST_P(DirectRoute, IsJudgedByTheTreesAndTheConfiguration)
{
    const direct_row& it = GetParam();
    const topology in = parse_topology(std::string(trees) + std::string(with_nvlinks), "recorded");
    configuration by;
    by.rdma_dynamic_routing = it.dynamic;
    if (!it.order.empty())
        by.routing_order = it.order;
    const std::size_t gpu = in.find(it.gpu).value();
    const route made = decide_route(in, by, in.find(it.device).value(), gpu);
    const direct_judgment judged = judge_direct(in, made, gpu, 1 << 20, 256 << 20);
    EXPECT_EQ(judged.fall, it.fall);
    EXPECT_EQ(judged.why, it.why);
    const direct_judgment large = judge_direct(in, made, gpu, (256 << 20) + 1, 256 << 20);
    EXPECT_EQ(large.fall, file_fall::above_bar1) << "whatever the route";
    EXPECT_THAT(large.why, HasSubstr("268435457 bytes exceed the 268435456 bytes of gpu"));
    EXPECT_EQ(judge_direct(in, made, gpu, 256 << 20, 256 << 20).fall, it.fall) << "all of BAR1";
    EXPECT_EQ(judge_direct(in, made, gpu, ~0ull, 0).fall, it.fall) << "a BAR1 that is unknown";
}

INSTANTIATE_TEST_SUITE_P(
    Rows, DirectRoute,
    ::testing::Values(
        direct_row{"OneTree", "mlx5_0", "gpu1", false, {}, file_fall::none, "mlx5_0 and gpu1 share a PCIe tree"},
        direct_row{
            "OneTreeWithRouting", "mlx5_0", "gpu0", true, {}, file_fall::none, "mlx5_0 and gpu0 share a PCIe tree"},
        direct_row{"TwoRoots",
                   "nvme0n1",
                   "gpu0",
                   false,
                   {},
                   file_fall::better_staged,
                   "nvme0n1 and gpu0 are below different root complexes"},
        direct_row{"TwoPortsOfARoot",
                   "nvme0n1",
                   "gpu2",
                   false,
                   {},
                   file_fall::better_staged,
                   "nvme0n1 and gpu2 are below different ports of one root complex"},
        direct_row{
            "ByNvlink", "mlx5_0", "gpu2", true, {}, file_fall::better_staged, "the route stages by GPU_MEM_NVLINKS"},
        direct_row{"ByHost", "nvme0n1", "gpu2", true, {}, file_fall::better_staged, "the route stages by SYS_MEM"},
        direct_row{"P2pAskedFor", "nvme0n1", "gpu2", true, {p2p}, file_fall::none, "the configuration selects P2P"}),
    [](const auto& info) { return info.param.name; });

TEST(DirectRoutes, OfAnUnknownDeviceIsNotJudged)
{
    const topology in = parse_topology(trees, "recorded");
    const direct_judgment judged = judge_direct(in, route{}, in.find("gpu0").value(), 1 << 30, 1 << 20);
    EXPECT_EQ(judged.fall, file_fall::none);
    EXPECT_EQ(judged.why, "no known storage device on PCIe");
}

TEST(Bar1, IsTheLargestOfTheBars)
{
    recorded_machine machine;
    machine.file("gpu/resource", "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n"
                                 "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
                                 "0x0000010000000000 0x00000100ffffffff 0x000000000014220c\n");
    EXPECT_EQ(devices::cuda::bar1_bytes(machine.root() / "gpu"), 4ull << 30);
    EXPECT_EQ(devices::cuda::bar1_bytes(machine.root() / "none"), 0u);
}

class GuideTable : public ::testing::TestWithParam<row> {
 protected:
    topology in_ = parse_topology(std::string(trees) + std::string(GetParam().nvlinks ? with_nvlinks : ""), "recorded");
};

TEST_P(GuideTable, DecidesAsTheGuideSays)
{
    const row& it = GetParam();
    configuration by;
    by.rdma_dynamic_routing = true;
    if (!it.order.empty())
        by.routing_order = it.order;
    const route made = decide_route(in_, by, in_.find(it.device).value(), in_.find(it.gpu).value());
    EXPECT_EQ(made.dynamic, it.dynamic);
    EXPECT_EQ(made.policy, it.policy);
    EXPECT_EQ(made.staging_gpu ? in_.nodes()[*made.staging_gpu].name : "", it.staging_gpu);
    EXPECT_EQ(made.reason, it.reason);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, GuideTable,
    ::testing::Values(
        row{"GpusHaveNvlinks",
            true,
            "mlx5_0",
            "gpu2",
            {},
            true,
            gpu_mem_nvlinks,
            "gpu0",
            "GPU_MEM_NVLINKS: memory of gpu0 in the PCIe tree of mlx5_0, then NVLink to gpu2"},
        row{"GpusHaveNoNvlinks",
            false,
            "mlx5_0",
            "gpu2",
            {},
            true,
            gpu_mem,
            "gpu0",
            "GPU_MEM_NVLINKS does not apply, no GPU in the PCIe tree of mlx5_0 has an NVLink to gpu2; GPU_MEM: memory "
            "of "
            "gpu0 in the PCIe tree of mlx5_0, then PCIe to gpu2"},
        row{"NoGpuSharesTheRootPortOfTheNic",
            true,
            "mlx5_1",
            "gpu2",
            {},
            true,
            sys_mem,
            "",
            "GPU_MEM_NVLINKS does not apply, no GPU shares the PCIe tree of mlx5_1; GPU_MEM does not apply, no GPU "
            "shares "
            "the PCIe tree of mlx5_1; SYS_MEM: pinned host memory of NUMA node 1 near mlx5_1, then PCIe to gpu2"},
        row{"P2pAcrossRootPorts",
            true,
            "mlx5_1",
            "gpu2",
            {p2p},
            true,
            p2p,
            "",
            "P2P: PCIe across root ports, mlx5_1 to gpu2"},
        row{"NicAndGpuShareATree",
            true,
            "mlx5_0",
            "gpu0",
            {},
            false,
            p2p,
            "",
            "both are in the PCIe tree of 0000:00:01.0: P2P or staging as without routing, mlx5_0 to gpu0"},
        row{"NicAndGpuShareATreeByAnUpperSwitch",
            true,
            "mlx5_0",
            "gpu1",
            {sys_mem},
            false,
            p2p,
            "",
            "both are in the PCIe tree of 0000:00:01.0: P2P or staging as without routing, mlx5_0 to gpu1"},
        row{"OrderWithoutGpuMemFallsToSysMem",
            false,
            "mlx5_0",
            "gpu2",
            {gpu_mem_nvlinks, sys_mem},
            true,
            sys_mem,
            "",
            "GPU_MEM_NVLINKS does not apply, no GPU in the PCIe tree of mlx5_0 has an NVLink to gpu2; SYS_MEM: pinned "
            "host memory of NUMA node 0 near mlx5_0, then PCIe to gpu2"},
        row{"OrderOfSysMemOnlyIgnoresNvlinks",
            true,
            "mlx5_0",
            "gpu2",
            {sys_mem},
            true,
            sys_mem,
            "",
            "SYS_MEM: pinned host memory of NUMA node 0 near mlx5_0, then PCIe to gpu2"},
        row{"OrderMayPreferPcie",
            true,
            "mlx5_0",
            "gpu2",
            {gpu_mem, gpu_mem_nvlinks},
            true,
            gpu_mem,
            "gpu0",
            "GPU_MEM: memory of gpu0 in the PCIe tree of mlx5_0, then PCIe to gpu2"},
        row{"NothingApplies",
            true,
            "mlx5_1",
            "gpu2",
            {gpu_mem},
            false,
            p2p,
            "",
            "GPU_MEM does not apply, no GPU shares the PCIe tree of mlx5_1; no policy of "
            "properties.rdma_dynamic_routing_order applies: P2P or staging as without routing, mlx5_1 to gpu2"},
        row{"DrivesAreRoutedToo",
            true,
            "nvme0n1",
            "gpu0",
            {sys_mem},
            true,
            sys_mem,
            "",
            "SYS_MEM: pinned host memory of NUMA node 1 near nvme0n1, then PCIe to gpu0"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Routing, IsOffByDefault)
{
    const topology in = parse_topology(std::string(trees) + std::string(with_nvlinks), "recorded");
    const route made = decide_route(in, {}, in.find("mlx5_0").value(), in.find("gpu2").value());
    EXPECT_FALSE(made.dynamic);
    EXPECT_THAT(made.reason, HasSubstr("properties.rdma_dynamic_routing is off"));
}

TEST(Routing, TakesTheLinkedGpuThatIsFartherWhenTheNearestHasNoLink)
{
    const topology in = parse_topology(std::string(trees) + "nvlink gpu1 gpu2\n", "recorded");
    configuration by;
    by.rdma_dynamic_routing = true;
    const route made = decide_route(in, by, in.find("mlx5_0").value(), in.find("gpu2").value());
    EXPECT_EQ(made.staging_gpu, in.find("gpu1"));
}

class MountRouting : public ::testing::Test {
 protected:
    route to(std::string_view gpu, const storage_devices& of)
    {
        return decide_route(in_, by_, of, in_.find(gpu).value());
    }

    topology in_ = parse_topology(std::string(trees) + std::string(with_nvlinks), "recorded");
    configuration by_ = parse_configuration(R"({"properties": {"rdma_dynamic_routing": true},
        "fs": {"nfs": {"rdma_dev_addr_list": ["172.172.2.40", "172.172.1.40", "9.9.9.9"]},
               "lustre": {"mount_table": {"/far": {"rdma_dev_addr_list": ["9.9.9.9"]}}}}})",
                                            "cufile.json");
};

TEST_F(MountRouting, PrefersTheNicInTheTreeOfTheGpu)
{
    const route made = to("gpu1", {"nfs", "/mnt", {}});
    EXPECT_EQ(made.device, in_.find("mlx5_0"));
    EXPECT_FALSE(made.dynamic);
    EXPECT_THAT(made.reason, HasSubstr("not on PCIe here: 9.9.9.9"));
}

TEST_F(MountRouting, ThenTheNicWithTheEarlierPolicy)
{
    const route made = to("gpu2", {"nfs", "/mnt", {}});
    EXPECT_EQ(made.device, in_.find("mlx5_0")) << "mlx5_1 comes first in the list, but has SYS_MEM only";
    EXPECT_EQ(made.policy, gpu_mem_nvlinks);
}

TEST_F(MountRouting, TellsThatNoDeviceIsKnown)
{
    EXPECT_EQ(to("gpu0", {"ext4", "/", {}}).reason,
              "no storage device is known; name the NICs of the mount in rdma_dev_addr_list");
    EXPECT_EQ(to("gpu0", {"lustre", "/far", {}}).reason, "not on PCIe here: 9.9.9.9");
}

TEST_F(MountRouting, KnowsTheDrivesOfALocalFileSystem)
{
    const route made = to("gpu0", {"xfs", "/", {"nvme0n1"}});
    EXPECT_EQ(made.device, in_.find("nvme0n1"));
    EXPECT_EQ(made.policy, sys_mem);
    EXPECT_EQ(made.numa, 1);
}

} // namespace

} // namespace weftio::storage
