// How GPUs, NICs and drives are connected: trees of PCIe, and NVLink.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weftio::storage {

/// A node of a PCIe tree.
struct topology_node {
    enum class kind : std::uint8_t { root, port, bridge, gpu, nic, drive };

    kind what = kind::root;
    std::string name{};                  ///< "pci0000:00", "0000:00:01.0", "gpu0", "mlx5_0", "nvme0n1"
    std::string address{};               ///< PCI address; of a root: empty
    std::optional<std::size_t> parent{}; ///< none: a root
    int numa = -1;                       ///< NUMA node; -1: unknown, that of the parent counts
    std::vector<std::string> ip{};       ///< of a NIC
};

/// The words of the text form: root, port, switch, gpu, nic, drive.
std::string_view to_string(topology_node::kind what) noexcept;

/// Trees of PCIe, each below a root complex. A value.
class topology {
 public:
    /// Adds a node; its parent must be there. Returns its index.
    std::size_t add(topology_node node);
    /// Tells that two GPUs have an NVLink.
    void connect(std::size_t gpu, std::size_t other);
    void add_addresses(std::size_t nic, const std::vector<std::string>& ip);

    const std::vector<topology_node>& nodes() const noexcept { return nodes_; }
    bool has_nvlink(std::size_t gpu, std::size_t other) const noexcept;
    const std::set<std::pair<std::size_t, std::size_t>>& nvlinks() const noexcept { return nvlinks_; }
    /// The node with that name, PCI address or IP address.
    std::optional<std::size_t> find(std::string_view name) const;
    std::vector<std::size_t> all(topology_node::kind what) const;

    /// The node below the root complex that has `node` below it, or is it: the root port.
    std::size_t tree_of(std::size_t node) const;
    /// How many nodes two paths from the root complex have in common. 0: different roots; 1: the root alone.
    std::size_t common(std::size_t node, std::size_t other) const;
    /// Whether two nodes are below one root port.
    bool share_tree(std::size_t node, std::size_t other) const;
    /// NUMA node, of the nearest ancestor that has one; -1: unknown.
    int numa_of(std::size_t node) const;

 private:
    std::vector<std::size_t> path_of(std::size_t node) const; ///< from the root to `node`

    std::vector<topology_node> nodes_;
    std::set<std::pair<std::size_t, std::size_t>> nvlinks_; ///< smaller index first
};

/// Reads the text form: one node a line, below its parent by two spaces more; then the NVLinks. `#` begins a comment.
///
///     root pci0000:00 numa 0
///       port 0000:00:01.0
///         switch 0000:02:00.0
///           gpu gpu0 pci 0000:03:00.0
///           nic mlx5_0 pci 0000:04:00.0 ip 172.172.1.40
///     nvlink gpu0 gpu1
///
/// All of it may be indented, and the heading of weftio-files --check (PLATFORM) may stand in front.
///
/// @param name  of the file, for messages
/// @throws weftio::error errc::invalid_argument  a line that is none of these, with its number
topology parse_topology(std::string_view text, std::string_view name);
/// Writes the text form.
std::string to_text(const topology& from);

/// IP addresses by network interface.
using interface_addresses = std::map<std::string, std::vector<std::string>>;
/// Those of this machine. Blocks for the kernel's answer; empty if there is none.
interface_addresses addresses_of_interfaces();

/// Reads the devices of a machine; what cannot be read is left out. NVLinks are not in /sys: add_nvlinks().
/// @param root  folder that has `sys`; "/" for this machine
topology read_topology(const std::filesystem::path& root, const interface_addresses& interfaces);

/// Adds the NVLinks of this machine's GPUs, also those through NVSwitches, as libnvidia-ml.so.1 knows them. Blocks
/// while that starts. Returns why nothing is known; empty: the links are complete.
std::string add_nvlinks(topology& to);

} // namespace weftio::storage
