// What a machine and a mount have: kernel, modules, file system, drives.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weftio::storage {

/// What the machine has, as /proc, /sys and /run say. A value; empty text: unknown or absent.
struct system_facts {
    std::string kernel{};            ///< "6.2.0-26-generic"
    unsigned kernel_version = 0;     ///< 602 for 6.2
    std::string machine{};           ///< "x86_64"
    std::optional<bool> p2pdma{};    ///< the kernel has PCI P2PDMA; none: /proc/kallsyms is unreadable
    std::string nvidia_driver{};     ///< "570.86.15"
    unsigned nvidia_branch = 0;      ///< 570
    bool nvidia_open = false;        ///< open kernel modules
    bool nvidia_static_bar1 = false; ///< the registry key that P2PDMA needs is set
    std::string nvidia_fs{};         ///< version of nvidia-fs.ko, or "loaded"
    bool iommu = false;              ///< an IOMMU translates
    std::optional<int>
        uring_denied{}; ///< sysctl kernel.io_uring_disabled: 0 nobody, 1 most, 2 all; none: no such sysctl
    bool udev = false;  ///< /run/udev is there
};

/// Reads the facts. Blocks for files. `root` has proc, sys and run: "/" for this machine.
system_facts read_system(const std::filesystem::path& root);

/// A line of /proc/self/mountinfo.
struct mount_entry {
    std::string id{};     ///< "36"
    std::string device{}; ///< "259:1"
    std::string point{};
    std::string options{};
    std::string file_system{};
    std::string source{};
    std::string super_options{};
};

std::vector<mount_entry> read_mounts(const std::filesystem::path& root);
/// The mount that has `path`, an absolute path without links: the last of the longest that fit. Null: none.
const mount_entry* mount_of(const std::vector<mount_entry>& mounts, std::string_view path);
/// The mount of an open descriptor of this process; none: /proc does not tell.
std::optional<mount_entry> mount_of_descriptor(const std::filesystem::path& root, int descriptor);

/// NVIDIA's libcufile where the CUDA toolkit and its packages have it, by its full path; empty: none.
std::string find_vendor_library(const std::filesystem::path& root);

/// What lies below a mount.
struct place_facts {
    mount_entry mount{};
    std::vector<std::string> drives{}; ///< whole drives: "nvme0n1"
    std::string raid{};                ///< "raid0", "device mapper", "loop"; empty: none
    bool multipath = false;            ///< an NVMe drive with several paths
    std::optional<bool> o_direct{};    ///< none: unknown
    std::string o_direct_why{};        ///< where that comes from
};

/// Recognizes the mount of a path. `root` as above.
place_facts recognize(const std::filesystem::path& root, const mount_entry& mount);
/// Asks the kernel whether files at `path`, a file or a folder of this machine, may be opened with O_DIRECT. Makes no
/// file that has a name. Returns nothing where only the kind of file system tells.
std::optional<bool> try_o_direct(const std::string& path);

/// Whether the file system writes to drives of this machine: ext4, xfs, btrfs.
bool is_local(std::string_view file_system) noexcept;

} // namespace weftio::storage
