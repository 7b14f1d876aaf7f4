// Recorded machines: what the way `direct` lacks on each, and which way is taken.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "recorded.hpp"
#include "storage/requirements.hpp"

namespace weftio::storage {

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view mounts_of_a_server =
    "22 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw,errors=remount-ro\n"
    "23 22 0:21 / /proc rw - proc proc rw\n"
    "30 22 9:0 / /data rw,noatime - xfs /dev/md0 rw,attr2\n"
    "31 30 0:50 / /data/a\\040share rw - nfs4 10.0.0.1:/x rw,vers=4.2,proto=tcp\n"
    "32 30 0:51 / /data/fast rw master:3 propagate_from:2 - nfs4 10.0.0.1:/x rw,proto=rdma\n"
    "33 22 0:52 / /tmp rw - tmpfs tmpfs rw\n"
    "34 22 7:0 / /loop rw - ext4 /dev/loop0 rw,data=writeback\n";

/// A server on which a plain NVMe drive could be read by P2PDMA, but for what a test takes away.
class Recognition : public ::testing::Test {
 protected:
    Recognition()
    {
        machine_.file("proc/sys/kernel/osrelease", "6.8.0-51-generic\n").file("proc/sys/kernel/arch", "x86_64\n");
        machine_.file("proc/kallsyms", "0000 T _text\n0000 d p2pdma_pgmap_ops\n");
        machine_.file("proc/driver/nvidia/version",
                      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n");
        machine_.file("proc/driver/nvidia/params",
                      "EnableMSI: 1\nRegistryDwords: \"RMForceStaticBar1=1;RmForceDisableIomapWC=1\"\n");
        machine_.file("proc/self/mountinfo", mounts_of_a_server);
        machine_.link("sys/dev/block/259:1", nvme_ + "/nvme0n1p1").file(nvme_ + "/nvme0n1p1/partition", "1");
        machine_.link("sys/dev/block/9:0", "sys/devices/virtual/block/md0");
        machine_.file("sys/devices/virtual/block/md0/md/level", "raid0\n");
        machine_.link("sys/devices/virtual/block/md0/slaves/nvme0n1", nvme_);
        machine_.link("sys/devices/virtual/block/md0/slaves/nvme1n1",
                      "sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1");
        machine_.link("sys/dev/block/7:0", "sys/devices/virtual/block/loop0");
        machine_.file("sys/devices/virtual/block/loop0/loop/backing_file", "/x\n");
    }

    place_facts place(std::string_view path)
    {
        const auto mounts = read_mounts(machine_.root());
        return recognize(machine_.root(), *mount_of(mounts, path));
    }
    /// The first requirement of an option that is not there: "name: found".
    std::string missing(std::size_t option, std::string_view path)
    {
        const direct_option made = direct_options(read_system(machine_.root()), place(path))[option];
        const requirement* first = made.missing();
        return first ? first->name + ": " + first->found : "nothing";
    }
    std::string missing_for_p2pdma(std::string_view path = "/file") { return missing(0, path); }
    std::string missing_for_nvidia_fs(std::string_view path = "/file") { return missing(1, path); }

    const std::string nvme_ = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1";
    recorded_machine machine_;
};

TEST_F(Recognition, ReadsMounts)
{
    const auto mounts = read_mounts(machine_.root());
    EXPECT_EQ(mount_of(mounts, "/etc/passwd")->file_system, "ext4");
    EXPECT_EQ(mount_of(mounts, "/data")->source, "/dev/md0");
    EXPECT_EQ(mount_of(mounts, "/database")->point, "/") << "no part of a name";
    EXPECT_EQ(mount_of(mounts, "/data/a share/x")->super_options, "rw,vers=4.2,proto=tcp");
    EXPECT_EQ(mount_of(mounts, "/data/fast")->file_system, "nfs4") << "two optional fields";
    EXPECT_EQ(mount_of({}, "/"), nullptr);
}

TEST_F(Recognition, TheLaterOfTwoMountsOnOnePointCounts)
{
    machine_.file("proc/self/mountinfo", "1 1 0:1 / / rw - ext4 a rw\n2 1 0:2 / /m rw - xfs b rw\n"
                                         "3 2 0:3 / /m rw - btrfs c rw\n");
    EXPECT_EQ(mount_of(read_mounts(machine_.root()), "/m/f")->file_system, "btrfs");
}

TEST_F(Recognition, FindsDrivesBelowPartitionsAndRaid)
{
    EXPECT_THAT(place("/").drives, ElementsAre("nvme0n1"));
    EXPECT_EQ(place("/").raid, "");
    EXPECT_THAT(place("/data").drives, testing::UnorderedElementsAre("nvme0n1", "nvme1n1"));
    EXPECT_EQ(place("/data").raid, "raid0");
    EXPECT_TRUE(place("/data").multipath);
    EXPECT_EQ(place("/loop").raid, "loop");
    EXPECT_TRUE(place("/data/fast").drives.empty());
}

TEST_F(Recognition, KnowsODirectByTheKindOfFileSystem)
{
    EXPECT_EQ(place("/").o_direct, true);
    EXPECT_EQ(place("/proc").o_direct, false);
    EXPECT_EQ(place("/tmp").o_direct, true) << "tmpfs since Linux 6.6";
    machine_.file("proc/sys/kernel/osrelease", "5.15.0\n");
    EXPECT_EQ(place("/tmp").o_direct, false);
    machine_.file("proc/self/mountinfo", "1 1 0:1 / / rw - strangefs a rw\n");
    EXPECT_EQ(place("/").o_direct, std::nullopt);
    EXPECT_THAT(missing(2, "/"), HasSubstr("io_uring reads into dma-buf"));
    EXPECT_EQ(direct_options(read_system(machine_.root()), place("/"))[0].needs.back().is, requirement::state::unknown);
}

TEST_F(Recognition, TriesODirectOnThisMachine)
{
    std::ofstream(machine_.root() / "file") << "x";
    const int file = ::open((machine_.root() / "file").c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
    EXPECT_EQ(try_o_direct(machine_.root() / "file"), file >= 0);
    if (file >= 0)
        ::close(file);
    EXPECT_EQ(try_o_direct(machine_.root() / "none"), std::nullopt);
    EXPECT_EQ(try_o_direct("/proc/self/status"), false);
    EXPECT_EQ(try_o_direct("/proc"), std::nullopt);
}

TEST_F(Recognition, PlainNvmeOfAReadyServerLacksNothing)
{
    EXPECT_EQ(missing_for_p2pdma(), "nothing");
}

TEST_F(Recognition, NamesTheRequirementThatP2pdmaLacks)
{
    struct without {
        std::string file, text, missing;
    };
    for (const auto& [file, text, missing] :
         {without{"proc/driver/nvidia/version", "", "NVIDIA driver: none"},
          without{"proc/driver/nvidia/version",
                  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  565.57.01  Release",
                  "NVIDIA driver 570 or later (CUDA 12.8): 565.57.01"},
          without{"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.86.15",
                  "open kernel modules: proprietary"},
          without{"proc/driver/nvidia/params", "RegistryDwords: \"\"", "static BAR1: not set"},
          without{"proc/sys/kernel/osrelease", "6.1.0-27-amd64", "kernel 6.2 or later: 6.1.0-27-amd64"},
          without{"proc/kallsyms", "0000 T _text\n", "PCI P2PDMA in the kernel: none"},
          without{"proc/kallsyms", "", "PCI P2PDMA in the kernel: unknown"},
          without{"proc/sys/kernel/arch", "aarch64", "x86_64: aarch64"},
          without{"sys/class/iommu/dmar0/x", "", "IOMMU off or in passthrough: translating"}}) {
        recorded_machine copy;
        std::filesystem::copy(machine_.root(), copy.root(),
                              std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
        copy.file(file, text);
        const auto mounts = read_mounts(copy.root());
        const auto made = direct_options(read_system(copy.root()), recognize(copy.root(), mounts.front()))[0];
        const requirement* first = made.missing();
        ASSERT_NE(first, nullptr) << missing;
        EXPECT_EQ(first->name + ": " + first->found, missing);
        EXPECT_NE(first->remedy, "") << missing;
    }
}

TEST_F(Recognition, PassthroughIommuIsAllowed)
{
    machine_.file("sys/class/iommu/dmar0/x", "").file("proc/cmdline", "root=/dev/x iommu=pt quiet\n");
    EXPECT_EQ(missing_for_p2pdma(), "nothing");
}

TEST_F(Recognition, P2pdmaWantsAPlainLocalNvmeDrive)
{
    EXPECT_EQ(missing_for_p2pdma("/data"), "no RAID, no loop: raid0");
    EXPECT_EQ(missing_for_p2pdma("/data/fast"), "local NVMe drive: nfs4");
    EXPECT_EQ(missing_for_p2pdma("/loop"), "local NVMe drive: loop0");
}

TEST_F(Recognition, NvidiaFsWantsItsModuleAndAFileSystemThatItKnows)
{
    EXPECT_EQ(missing_for_nvidia_fs(), "nvidia-fs.ko: not loaded");
    machine_.file("proc/modules", "ext4 1 2 - Live 0x0\nnvidia_fs 323584 0 - Live 0x0\n");
    EXPECT_EQ(missing_for_nvidia_fs(), "/run/udev: absent");
    machine_.file("run/udev/data/x", "").file("proc/driver/nvidia-fs/version", "version: 2.24\n");
    EXPECT_EQ(missing_for_nvidia_fs(), "nothing");
    EXPECT_EQ(read_system(machine_.root()).nvidia_fs, "2.24");
    EXPECT_EQ(missing_for_nvidia_fs("/data/fast"), "nothing");
    EXPECT_EQ(missing_for_nvidia_fs("/data/a share"), "file system that nvidia-fs supports: nfs4");
    EXPECT_EQ(missing_for_nvidia_fs("/loop"), "file system that nvidia-fs supports: ext4") << "data=writeback";
    EXPECT_EQ(missing_for_nvidia_fs("/tmp"), "file system that nvidia-fs supports: tmpfs");
}

TEST_F(Recognition, RulesForHostMemoryTakeUringThenPosix)
{
    const rules made(read_system(machine_.root()), place("/"), {}, {});
    EXPECT_EQ(to_text(made), "direct  no     the memory is not a GPU's\n"
                             "cufile  no     the memory is not a GPU's\n"
                             "uring   taken  io_uring is allowed\n"
                             "posix   next   any file system, any memory\n");
    const rules denied(read_system(machine_.root()), place("/"), {}, {.uring = false, .uring_why = "seccomp"});
    EXPECT_EQ(denied.chosen()->way, file_way::posix);
    EXPECT_EQ(denied.all()[2].why, "seccomp");
    machine_.file("proc/sys/kernel/io_uring_disabled", "2\n");
    EXPECT_EQ(rules(read_system(machine_.root()), place("/"), {}, {}).chosen()->way, file_way::posix);
}

TEST_F(Recognition, RulesForMemoryOfAGpuNameWhatDirectLacks)
{
    machine_.file("proc/driver/nvidia/params", "");
    const rules made(read_system(machine_.root()), place("/"), {}, {.device_memory = true});
    EXPECT_EQ(made.all()[0].why,
              "PCI P2PDMA: static BAR1 missing (not set); nvidia-fs: nvidia-fs.ko missing (not loaded); dma-buf: "
              "io_uring reads into dma-buf missing (in no kernel release)");
    EXPECT_EQ(made.all()[1].why, "NVIDIA's library was not requested");
    EXPECT_EQ(made.chosen()->way, file_way::uring);
}

TEST_F(Recognition, RulesObeyTheConfiguration)
{
    const system_facts system = read_system(machine_.root());
    const way_conditions gpu{.device_memory = true, .vendor_library = true};
    configuration by;
    EXPECT_EQ(rules(system, place("/"), by, gpu).chosen()->way, file_way::cufile);
    EXPECT_THAT(rules(system, place("/"), by, gpu).all()[0].why, HasSubstr("all requirements are met, but this build"));
    by.force_compat_mode = true;
    EXPECT_EQ(rules(system, place("/"), by, gpu).chosen()->way, file_way::posix);
    EXPECT_EQ(rules(system, place("/"), by, {}).chosen()->way, file_way::posix) << "host memory";
    by.allow_compat_mode = false;
    EXPECT_EQ(rules(system, place("/"), by, gpu).chosen(), nullptr);
    EXPECT_EQ(rules(system, place("/"), by, {}).chosen()->way, file_way::posix) << "host memory";
    by = {};
    by.denied_file_systems = {"ext4"};
    EXPECT_EQ(rules(system, place("/"), by, gpu).all()[0].why, "the configuration's denylist lists this mount");
    EXPECT_EQ(rules(system, place("/"), by, gpu).all()[1].why, "the configuration's denylist lists this mount");
    by.denied_file_systems.clear();
    by.denied_mounts = {"/data"};
    EXPECT_EQ(rules(system, place("/data"), by, gpu).all()[0].why, "the configuration's denylist lists this mount");
    EXPECT_EQ(rules(system, place("/data"), by, {.device_memory = true, .managed_memory = true}).all()[0].why,
              "managed memory migrates");
}

} // namespace

} // namespace weftio::storage
