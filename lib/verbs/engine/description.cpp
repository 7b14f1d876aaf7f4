// The contents of a tree.
#include "tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "../device_paths.hpp"
#include "../seam.hpp"

namespace weftio::verbs {

namespace {

namespace fs = std::filesystem;

/// A folder of the tree. The constructor creates it.
class folder {
 public:
    explicit folder(fs::path path) : path_(std::move(path)) { fs::create_directories(path_); }

    folder operator/(std::string_view name) const { return folder(path_ / name); }
    const fs::path& path() const noexcept { return path_; }

    /// Writes a file with one line, as almost all files of sysfs are.
    void line(std::string_view name, std::string_view text) const
    {
        std::ofstream file(path_ / name);
        file << text << '\n';
        if (!file.flush())
            throw std::system_error(errno, std::generic_category(), (path_ / name).string());
    }
    /// Creates a symbolic link, relative to this folder.
    void link(std::string_view name, std::string_view to) const { fs::create_symlink(to, path_ / name); }

 private:
    fs::path path_;
};

std::string line_of(const fs::path& path)
{
    std::ifstream file(path);
    std::string text;
    std::getline(file, text);
    return text;
}

/// The name of a PCIe device, such as 7765:00:00.0.
std::string pci_name(unsigned device)
{
    return fmt::format("{}00:{:02x}.0", pci_domain, device);
}

std::string guid_text(std::uint64_t guid)
{
    return fmt::format("{:04x}:{:04x}:{:04x}:{:04x}", guid >> 48, guid >> 32 & 0xffff, guid >> 16 & 0xffff,
                       guid & 0xffff);
}

/// NUMA files: devices are near the first NUMA node. A host without NUMA nodes says -1.
void describe_numa(const folder& pci)
{
    const fs::path node = "/sys/devices/system/node/node0";
    const std::string cpus = line_of(node / "cpumap");
    pci.line("numa_node", cpus.empty() ? "-1" : "0");
    pci.line("local_cpus", cpus.empty() ? "ffffffff" : cpus);
    pci.line("local_cpulist", line_of(cpus.empty() ? fs::path("/sys/devices/system/cpu/online") : node / "cpulist"));
}

/// The PCIe function of a ConnectX-7.
void describe_function(const folder& pci, unsigned device)
{
    const std::string modalias = "pci:v000015B3d00001021sv000015B3sd00000008bc02sc00i00";
    const std::pair<const char*, std::string> lines[] = {{"vendor", "0x15b3"},
                                                         {"device", "0x1021"},
                                                         {"subsystem_vendor", "0x15b3"},
                                                         {"subsystem_device", "0x0008"},
                                                         {"class", "0x020000"},
                                                         {"revision", "0x00"},
                                                         {"irq", "0"},
                                                         {"enable", "1"},
                                                         {"modalias", modalias},
                                                         {"max_link_speed", "32.0 GT/s PCIe"},
                                                         {"current_link_speed", "16.0 GT/s PCIe"},
                                                         {"max_link_width", "16"},
                                                         {"current_link_width", "16"}};
    for (const auto& [name, text] : lines)
        pci.line(name, text);
    pci.line("resource", "0x0000000000000000 0x0000000000000000 0x0000000000000000");
    pci.line("uevent", fmt::format("DRIVER=mlx5_core\nPCI_CLASS=20000\nPCI_ID=15B3:1021\nPCI_SUBSYS_ID=15B3:0008\n"
                                   "PCI_SLOT_NAME={}\nMODALIAS={}",
                                   pci_name(device), modalias));
    pci.link("subsystem", "../../../bus/pci");
    pci.link("driver", "../../../bus/pci/drivers/mlx5_core");
    describe_numa(pci);
}

/// The network interfaces that have the addresses.
void describe_interfaces(const folder& pci, const device_description& device)
{
    const auto& mac = device.mac;
    for (const gid_description& gid : device.gids) {
        if (gid.interface.empty() || fs::exists(pci.path() / "net" / gid.interface))
            continue;
        const folder interface = pci / "net" / gid.interface;
        interface.line("address", fmt::format("{:02x}", fmt::join(mac, ":")));
        interface.line("mtu", std::to_string(device.mtu_bytes));
        interface.line("operstate", "up");
        interface.line("carrier", "1");
        interface.line("type", "1");
        interface.line("dev_id", "0x0");
        interface.line("dev_port", "0");
        interface.link("device", "../../../" + pci.path().filename().string());
    }
}

void describe_addresses(const folder& port, const device_description& device)
{
    const folder gids = port / "gids", types = port / "gid_attrs" / "types", interfaces = port / "gid_attrs" / "ndevs";
    for (std::size_t i = 0; i < device.gids.size(); ++i) {
        const std::string index = std::to_string(i);
        gids.line(index, device.gids[i].gid);
        types.line(index, device.gids[i].type);
        if (!device.gids[i].interface.empty())
            interfaces.line(index, device.gids[i].interface);
    }
}

void describe_port(const folder& port, const device_description& device)
{
    const std::pair<const char*, const char*> lines[] = {{"state", "4: ACTIVE"},
                                                         {"phys_state", "5: LinkUp"},
                                                         {"rate", "100 Gb/sec (4X EDR)"},
                                                         {"link_layer", "Ethernet"},
                                                         {"lid", "0x0"},
                                                         {"sm_lid", "0x0"},
                                                         {"lid_mask_count", "0"},
                                                         {"sm_sl", "0"},
                                                         {"cap_mask", "0x04010000"}};
    for (const auto& [name, text] : lines)
        port.line(name, text);
    (port / "pkeys").line("0", "0xffff");
    describe_addresses(port, device);
}

void describe_device(const fs::path& root, const device_description& device, unsigned number)
{
    const std::string pci_path = fmt::format("{}/{}", pci_root, pci_name(number));
    const folder pci(root.string() + pci_path);
    const std::string node_name = fmt::format("uverbs{}", number);
    describe_function(pci, number);
    describe_interfaces(pci, device);

    const folder rdma = pci / "infiniband" / device.name;
    rdma.line("node_type", "1: CA");
    rdma.line("node_guid", guid_text(device.guid));
    rdma.line("sys_image_guid", guid_text(device.guid));
    rdma.line("node_desc", "Weftio " + device.name);
    rdma.line("fw_ver", device.firmware);
    rdma.line("hw_rev", "0");
    rdma.line("hca_type", "MT4129");
    rdma.line("board_id", "WFT0000000001");
    rdma.link("device", "../../../" + pci_name(number));
    rdma.link("subsystem", "../../../../../class/infiniband");
    describe_port(rdma / "ports" / "1", device);

    const unsigned minor = first_node_minor + number;
    const folder node = pci / "infiniband_verbs" / node_name;
    node.line("ibdev", device.name);
    node.line("dev", fmt::format("{}:{}", node_major, minor));
    node.line("abi_version", "1");
    node.line("uevent", fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/{}", node_major, minor, node_name));
    node.link("device", "../../../" + pci_name(number));
    node.link("subsystem", "../../../../../class/infiniband_verbs");
}

void make_node(const fs::path& root, std::string_view name)
{
    const fs::path file = folder(root.string() + node_folder).path() / name;
    if (!std::ofstream(file))
        throw std::system_error(errno, std::generic_category(), file.string());
    fs::permissions(file, fs::perms(0666));
}

/// Links by class and by bus, and the nodes.
void describe_links(const fs::path& root, const device_description& device, unsigned number)
{
    const std::string name = pci_name(number), node = fmt::format("uverbs{}", number);
    const std::string from_class = std::string("../../") + (pci_root + sizeof "/sys/" - 1) + "/" + name;
    folder(root / "sys/class/infiniband").link(device.name, from_class + "/infiniband/" + device.name);
    folder(root / "sys/class/infiniband_verbs").link(node, from_class + "/infiniband_verbs/" + node);
    folder(root.string() + pci_links).link(name, "../" + from_class);
    make_node(root, node);
}

/// What librdmacm looks for: the version of the commands, and the node.
void describe_connection_manager(const fs::path& root)
{
    const folder misc(root.string() + connection_manager_folder);
    misc.line("abi_version", "4");
    misc.line("dev", fmt::format("{}:{}", misc_major, connection_manager_minor));
    misc.line("uevent", fmt::format("MAJOR={}\nMINOR={}\nDEVNAME=infiniband/{}", misc_major, connection_manager_minor,
                                    connection_manager_name));
    make_node(root, connection_manager_name);
}

} // namespace

void describe(const fs::path& root, std::span<const device_description> devices)
{
    folder(root / "sys/class/infiniband_verbs").line("abi_version", "6");
    fs::create_directories(root / "sys/bus/pci/drivers/mlx5_core");
    describe_connection_manager(root);
    // Last first: tmpfs lists the newest file first, and programs take the first device that is listed.
    for (auto i = static_cast<unsigned>(devices.size()); i-- > 0;) {
        describe_device(root, devices[i], i);
        describe_links(root, devices[i], i);
    }
}

} // namespace weftio::verbs
