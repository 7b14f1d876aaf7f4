#include "gpudirect.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string_view>

namespace weftio::files {

namespace {

namespace fs = std::filesystem;
using kind = storage::topology_node::kind;

bool is_loaded(const fs::path& root, std::string_view module)
{
    std::ifstream modules(root / "proc/modules");
    for (std::string line; std::getline(modules, line);)
        if (line.substr(0, line.find(' ')) == module)
            return true;
    return false;
}

/// The socket of a NUMA node's first CPU; -1: unknown.
int socket_of(const fs::path& root, int node)
{
    int cpu = -1, socket = -1;
    std::ifstream(root / fmt::format("sys/devices/system/node/node{}/cpulist", node)) >> cpu;
    if (cpu >= 0)
        std::ifstream(root / fmt::format("sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu)) >> socket;
    return socket;
}

bool is_tegra(const fs::path& root)
{
    std::ifstream compatible(root / "proc/device-tree/compatible", std::ios::binary);
    const std::string names{std::istreambuf_iterator<char>(compatible), {}};
    return names.find("nvidia,tegra") != std::string::npos || fs::exists(root / "etc/nv_tegra_release");
}

/// One of the two modules by which RDMA drivers took pointers of GPUs before dma-buf, at most, is loaded.
void add_peer_modules(group& to, const fs::path& root)
{
    const bool newer = is_loaded(root, "nvidia_peermem"), older = is_loaded(root, "nv_peer_mem");
    to.findings.push_back({"nvidia-peermem", newer ? "present" : "missing",
                           newer ? "loaded" : "not loaded; registering by dma-buf needs no module",
                           newer || older ? "" : "for programs that register plain pointers: modprobe nvidia-peermem"});
    if (newer && older)
        to.findings.push_back({"nv_peer_mem", "conflict", "loaded beside nvidia-peermem: both want the same calls",
                               "service nv_peer_mem stop; rmmod nv_peer_mem; remove its package"});
    else
        to.findings.push_back({"nv_peer_mem", "",
                               older ? "loaded: the module before nvidia-peermem" : "not loaded, as it should be",
                               older ? "to use nvidia-peermem, stop and remove nv_peer_mem first" : ""});
}

group modules(const fs::path& root)
{
    group made;
    add_peer_modules(made, root);
    made.findings.push_back({"GDRCopy", "",
                             fmt::format("gdrdrv is {}; Weftio does not use GDRCopy: the CPU gets at a GPU's memory by "
                                         "copy engines",
                                         is_loaded(root, "gdrdrv") ? "loaded" : "not loaded"),
                             ""});
    if (is_tegra(root))
        made.findings.push_back({"Tegra", "", "memory of the host is the path of NICs here; Weftio is untested on it",
                                 "allocate by cudaHostAlloc(); see docs/gpu.md, Tegra"});
    return made;
}

const char* words_of(pcie_path path)
{
    switch (path) {
        case pcie_path::switches: return "switches only: the best path";
        case pcie_path::one_root: return "through one root complex: works; reads of GPU memory may be slow";
        case pcie_path::one_socket:
            return "through two root complexes of one socket: works; reads of GPU memory may be slow";
        case pcie_path::sockets: return "across sockets: slow, and may not work reliably";
        case pcie_path::unknown: break;
    }
    return "through two root complexes; /sys does not say of which sockets";
}

group paths(const storage::topology& trees, const fs::path& root)
{
    group made{.title = "PCIe between GPUs and NICs"};
    for (const std::size_t gpu : trees.all(kind::gpu))
        for (const std::size_t nic : trees.all(kind::nic)) {
            const pcie_path path = path_between(trees, gpu, nic, root);
            made.findings.push_back({fmt::format("{} {}", trees.nodes()[gpu].name, trees.nodes()[nic].name),
                                     path == pcie_path::unknown ? "unknown" : "", words_of(path),
                                     path == pcie_path::sockets ? "take a NIC of the GPU's socket" : ""});
        }
    if (made.findings.empty())
        made.findings.push_back({"-", "", "no GPU and NIC on PCIe", ""});
    return made;
}

} // namespace

pcie_path path_between(const storage::topology& trees, std::size_t one, std::size_t other, const fs::path& root)
{
    const std::size_t common = trees.common(one, other);
    if (common > 1)
        return pcie_path::switches;
    if (common == 1)
        return pcie_path::one_root;
    const int node = trees.numa_of(one), far_node = trees.numa_of(other);
    const int socket = socket_of(root, node), far_socket = socket_of(root, far_node);
    if (socket >= 0 && far_socket >= 0)
        return socket == far_socket ? pcie_path::one_socket : pcie_path::sockets;
    if (node < 0 || far_node < 0)
        return pcie_path::unknown;
    return node == far_node ? pcie_path::one_socket : pcie_path::unknown;
}

section gpudirect(const storage::topology& trees, const fs::path& root)
{
    return {"GPUDIRECT RDMA", {modules(root), paths(trees, root)}};
}

} // namespace weftio::files
