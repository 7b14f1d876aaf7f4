#include "topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string_view>
#include <vector>

#include "devices/cuda/bar1.hpp"
#include "devices/cuda/driver.hpp"
#include "devices/cuda/management.hpp"
#include "weftio/error.hpp"

namespace weftio::bench {

namespace {

namespace fs = std::filesystem;
using storage::topology;
using storage::topology_node;
using kind = topology_node::kind;

std::string first_line(const fs::path& file)
{
    std::string line;
    std::ifstream in(file);
    std::getline(in, line);
    return line;
}

/// Whether a list such as "0-15,32" has a core; empty lists have none.
bool has_cores(const std::string& list)
{
    return list.find_first_of("0123456789") != std::string::npos;
}

/// Cores by NUMA node, as the kernel lists them.
std::map<int, std::string> cores_by_node(const fs::path& root)
{
    std::map<int, std::string> found;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(root / "sys/devices/system/node", ignored)) {
        const std::string name = entry.path().filename();
        if (name.rfind("node", 0) != 0 || name.find_first_not_of("0123456789", 4) != std::string::npos)
            continue;
        if (const std::string cores = first_line(entry.path() / "cpulist"); has_cores(cores))
            found[std::stoi(name.substr(4))] = cores;
    }
    return found;
}

std::string node_words(int numa)
{
    return numa < 0 ? "NUMA node unknown" : fmt::format("NUMA node {}", numa);
}

/// How far two devices are on PCIe.
std::string pcie_words(const topology& trees, std::size_t one, std::size_t other)
{
    const auto& nodes = trees.nodes();
    const int numa = trees.numa_of(one), other_numa = trees.numa_of(other);
    if (trees.common(one, other) == 0) {
        if (numa < 0 || other_numa < 0)
            return "different root complexes";
        return numa == other_numa ? "different root complexes of one NUMA node" : "different NUMA nodes";
    }
    if (!trees.share_tree(one, other))
        return "one root complex, no port in common";
    if (nodes[one].parent == nodes[other].parent)
        return nodes[*nodes[one].parent].what == kind::port ? "one root port" : "one switch";
    return "one root port, different switches";
}

std::string core_words(int numa, int of_cores)
{
    return numa < 0 ? "NUMA node unknown" : numa == of_cores ? "same NUMA node" : "different NUMA nodes";
}

/// What NVLink saves, on the machine where it was measured.
constexpr std::string_view nvlink_cost =
    "on two H200, a flag between kernels goes there and back in 2.7 us, in pinned memory in 4.5 us";

void add_distances(std::string& text, const fs::path& root, const topology& trees, const driver_facts& driver)
{
    const auto gpus = trees.all(kind::gpu), nics = trees.all(kind::nic);
    const auto cores = cores_by_node(root);
    text += "DISTANCES\n";
    for (std::size_t gpu : gpus) {
        const topology_node& node = trees.nodes()[gpu];
        text += fmt::format("  {} {}, {}\n", node.name, node.address, node_words(trees.numa_of(gpu)));
        for (std::size_t other : gpus)
            if (other != gpu)
                text += fmt::format("    {}: {}PCIe: {}{}\n", trees.nodes()[other].name,
                                    trees.has_nvlink(gpu, other)   ? "NVLink; "
                                    : driver.no_management.empty() ? "no NVLink; "
                                                                   : "NVLink unknown (" + driver.no_management + "); ",
                                    pcie_words(trees, gpu, other),
                                    trees.has_nvlink(gpu, other) ? fmt::format(" ({})", nvlink_cost) : "");
        for (std::size_t nic : nics)
            text += fmt::format("    port {} {}: PCIe: {}\n", trees.nodes()[nic].name, trees.nodes()[nic].address,
                                pcie_words(trees, gpu, nic));
        for (const auto& [numa, list] : cores)
            text += fmt::format("    cores {} (NUMA node {}): {}\n", list, numa, core_words(trees.numa_of(gpu), numa));
    }
    if (gpus.empty())
        text += "  no GPU on PCIe (no device of vendor 0x10de in sys/bus/pci/devices)\n";
    if (nics.empty())
        text += "  no port on PCIe (none in sys/class/net or sys/class/infiniband)\n";
    if (cores.empty())
        text += "  cores unknown: sys/devices/system/node cannot be read\n";
}

fs::path pci_folder(const fs::path& root, const topology_node& node)
{
    return root / "sys/bus/pci/devices" / node.address;
}

std::string iommu_words(const fs::path& device)
{
    if (!fs::exists(device))
        return "unknown: its folder in sys/bus/pci/devices cannot be read";
    if (!fs::exists(device / "iommu_group"))
        return "none";
    const std::string type = first_line(device / "iommu_group/type");
    if (type.empty())
        return "unknown: iommu_group/type cannot be read";
    if (type == "identity")
        return "passthrough";
    return fmt::format("translates ({}): a peer's accesses go through it; boot with iommu=pt", type);
}

/// The ACS control register of a bridge, from its configuration space (PCI Express base specification, "ACS Extended
/// Capability"): 2 bytes behind offset 6 of extended capability 0x000d.
struct acs {
    enum class state { redirects, straight, absent, unknown } is = state::unknown;
    std::string why{};
};

acs acs_of(const fs::path& device)
{
    constexpr std::size_t first_capability = 0x100, control = 6;
    constexpr unsigned acs_id = 0x000d, request_redirect = 1u << 2, completion_redirect = 1u << 3;
    std::ifstream in(device / "config", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    auto word = [&](std::size_t at) {
        return static_cast<unsigned char>(bytes[at]) | static_cast<unsigned>(static_cast<unsigned char>(bytes[at + 1]))
                                                           << 8;
    };
    if (bytes.empty())
        return {acs::state::unknown, "its configuration space cannot be read"};
    if (bytes.size() <= first_capability)
        return {acs::state::unknown, "its extended configuration space can be read by root only, or it has none"};
    std::size_t at = first_capability;
    for (unsigned left = 96; left != 0 && at >= first_capability && at + control + 2 <= bytes.size(); --left) {
        if (word(at) == acs_id)
            return {(word(at + control) & (request_redirect | completion_redirect)) != 0 ? acs::state::redirects
                                                                                         : acs::state::straight};
        at = word(at + 2) >> 4;
    }
    return {acs::state::absent};
}

std::string acs_words(const fs::path& device)
{
    const acs found = acs_of(device);
    switch (found.is) {
        case acs::state::redirects:
            return "redirects: accesses between devices below it go up to the root complex; turn its ACS off in the "
                   "firmware or with setpci";
        case acs::state::straight: return "does not redirect";
        case acs::state::absent: return "none";
        case acs::state::unknown: break;
    }
    return "unknown: " + found.why;
}

std::string unknown_by(const std::string& why)
{
    return "unknown: " + (why.empty() ? "the driver does not say it" : why);
}

std::string bar1_words(const fs::path& device, const driver_facts::gpu& gpu, const driver_facts& driver)
{
    constexpr unsigned mib = 20;
    const std::uint64_t total = gpu.bar1_bytes.value_or(devices::cuda::bar1_bytes(device));
    return fmt::format(
        "{}, used {}", total != 0 ? fmt::format("{} MiB", total >> mib) : "unknown: its file resource cannot be read",
        gpu.bar1_used_bytes ? fmt::format("{} MiB", *gpu.bar1_used_bytes >> mib) : unknown_by(driver.no_management));
}

std::string peer_memory_words(const fs::path& root, const driver_facts::gpu& gpu, const driver_facts& driver)
{
    if (!fs::exists(root / "sys/module"))
        return "nvidia-peermem unknown: sys/module cannot be read";
    const bool module = fs::exists(root / "sys/module/nvidia_peermem");
    return fmt::format("nvidia-peermem {}, dma-buf {}{}", module ? "loaded" : "not loaded",
                       gpu.dma_buf ? (*gpu.dma_buf ? "supported" : "not supported") : unknown_by(driver.no_cuda),
                       module || gpu.dma_buf.value_or(true)
                           ? ""
                           : ": a NIC cannot reach the GPU's memory by itself; load nvidia-peermem, or install the "
                             "driver with open kernel modules");
}

std::string persistence_words(const driver_facts::gpu& gpu, const driver_facts& driver)
{
    if (!gpu.persistence)
        return unknown_by(driver.no_management);
    return *gpu.persistence ? "on" : "off: the driver starts anew for the first program; run nvidia-smi -pm 1";
}

void add_checks(std::string& text, const fs::path& root, const topology& trees, const driver_facts& driver)
{
    static const driver_facts::gpu nothing;
    text += "CHECKS\n";
    for (std::size_t gpu : trees.all(kind::gpu)) {
        const topology_node& node = trees.nodes()[gpu];
        const auto known = driver.gpus.find(node.address);
        const driver_facts::gpu& facts = known == driver.gpus.end() ? nothing : known->second;
        const fs::path folder = pci_folder(root, node);
        text += fmt::format("  {} IOMMU: {}\n", node.name, iommu_words(folder));
        text += fmt::format("  {} BAR1: {}\n", node.name, bar1_words(folder, facts, driver));
        text += fmt::format("  {} memory for NICs: {}\n", node.name, peer_memory_words(root, facts, driver));
        text += fmt::format("  {} persistence mode: {}\n", node.name, persistence_words(facts, driver));
        text += fmt::format("  {} NVLinks: {}\n", node.name,
                            facts.nvlinks ? std::to_string(*facts.nvlinks) : unknown_by(driver.no_management));
    }
    for (std::size_t nic : trees.all(kind::nic))
        text += fmt::format("  port {} IOMMU: {}\n", trees.nodes()[nic].name,
                            iommu_words(pci_folder(root, trees.nodes()[nic])));
    for (const topology_node& node : trees.nodes())
        if (node.what == kind::port || node.what == kind::bridge)
            text +=
                fmt::format("  {} {} ACS: {}\n", to_string(node.what), node.name, acs_words(pci_folder(root, node)));
}

/// Whether the GPU's memory can be given to NICs as a dma-buf; nothing: the driver does not know the GPU.
std::optional<bool> has_dma_buf(const devices::cuda::driver& cuda, const std::string& address)
{
    devices::cuda::device_number number = 0;
    int supported = 0;
    if (cuda.cuDeviceGetByPCIBusId(&number, address.c_str()) != devices::cuda::success ||
        cuda.cuDeviceGetAttribute(&supported, devices::cuda::dma_buf_supported, number) != devices::cuda::success)
        return {};
    return supported != 0;
}

void ask_management(driver_facts& to)
{
    const devices::cuda::management_library library;
    if (!library.is_ready()) {
        to.no_management =
            library.is_there() ? "libnvidia-ml.so.1 cannot be initialized" : "libnvidia-ml.so.1 cannot be loaded";
        return;
    }
    for (auto& [address, gpu] : to.gpus) {
        void* const device = library.device(address);
        if (!device)
            continue;
        if (const auto bar1 = library.bar1(device)) {
            gpu.bar1_bytes = bar1->total;
            gpu.bar1_used_bytes = bar1->total - bar1->free;
        }
        gpu.persistence = library.persistence_mode(device);
        gpu.nvlinks = library.active_nvlinks(device);
    }
}

void ask_cuda(driver_facts& to)
try {
    for (auto& [address, gpu] : to.gpus)
        gpu.dma_buf = has_dma_buf(devices::cuda::the_driver(), address);
} catch (const error& refused) {
    to.no_cuda = refused.what();
}

} // namespace

driver_facts ask_driver(const topology& trees)
{
    driver_facts made;
    for (std::size_t gpu : trees.all(kind::gpu))
        made.gpus[trees.nodes()[gpu].address] = {};
    if (made.gpus.empty())
        return made;
    ask_management(made);
    ask_cuda(made);
    return made;
}

std::string describe_topology(const fs::path& root, const topology& trees, const driver_facts& driver)
{
    std::string text;
    add_distances(text, root, trees, driver);
    add_checks(text, root, trees, driver);
    return text;
}

std::string describe_machine(const fs::path& root)
{
    if (!fs::is_directory(root / "sys"))
        throw error(errc::not_found, fmt::format("weftio: --root {}: it has no folder sys; name a folder that has one, "
                                                 "or leave --root out for this machine",
                                                 root.string()));
    if (root.lexically_normal() != "/")
        return describe_topology(root, storage::read_topology(root, {}),
                                 {.gpus = {}, .no_management = "another machine's", .no_cuda = "another machine's"});
    topology trees = storage::read_topology(root, storage::addresses_of_interfaces());
    storage::add_nvlinks(trees);
    return describe_topology(root, trees, ask_driver(trees));
}

} // namespace weftio::bench
