// The files that describe the devices to a program, with the layout of Linux below /sys and /dev.
//
// Readers: libibverbs and librdmacm (class/infiniband_verbs, class/infiniband), UCX, libfabric and NCCL (the same, and
// the PCIe device), ibdev2netdev (device/net), perftest (numa_node).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace weftio::verbs {

/// One address of a port, by its index.
struct gid_description {
    std::string gid;              ///< in the format of sysfs: fe80:0000:0000:0000:0000:00ff:fe00:0001
    std::string type = "RoCE v2"; ///< or "IB/RoCE v1"
    std::string interface;        ///< name of the network interface that has the address
};

/// A device with one port.
struct device_description {
    std::string name;       ///< mlx5_N
    std::uint64_t guid = 0; ///< node GUID; its first byte is the most significant
    std::string firmware;   ///< version, such as 28.39.1002
    unsigned mtu_bytes = 0; ///< MTU of the network interfaces
    std::array<std::uint8_t, 6> mac{};
    std::vector<gid_description> gids;
};

/// Folders for a tree, best first: /dev/shm, $TMPDIR, /tmp.
std::vector<std::filesystem::path> default_parents();

/// The files of one process, in a new folder in the first of `parents` where they can be written.
///
/// - Ownership: neither copied nor moved; the destructor removes the folder, except in a child of the process that made
///   it.
/// - Threads: one at a time.
/// - Errors: the constructor throws `weftio::error`
///     - `errc::permission_denied` the files cannot be written in any of `parents`
///
/// The constructor removes folders that ended processes of the same user have left.
class tree {
 public:
    explicit tree(std::span<const device_description> devices,
                  const std::vector<std::filesystem::path>& parents = default_parents());
    tree(const tree&) = delete;
    tree& operator=(const tree&) = delete;
    ~tree();

    /// The folder, without a slash at its end and without symbolic links: the prefix of "/sys" and "/dev".
    const std::string& path() const noexcept { return path_; }

 private:
    pid_t process_;
    std::string path_;
    void* lock_ = nullptr; ///< a mapping of the lock file; not in a child of fork()
};

/// Writes the files of the devices below an existing folder. Throws `std::system_error` when one cannot be written.
void describe(const std::filesystem::path& root, std::span<const device_description> devices);

/// Removes the folders in `parent` that ended processes have left. The lock of the folder alone says whether its
/// process lives: process numbers of another container mean nothing here, and are given to other processes.
void sweep_trees(const std::filesystem::path& parent) noexcept;

} // namespace weftio::verbs
