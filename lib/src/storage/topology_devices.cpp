// The devices of a machine, as /sys has them.
#include <arpa/inet.h>
#include <ifaddrs.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <netinet/in.h>

#include "storage/topology.hpp"

namespace weftio::storage {

namespace {

namespace fs = std::filesystem;
using kind = topology_node::kind;

/// First word of a file; empty if it cannot be read.
std::string word_of(const fs::path& file)
{
    std::string word;
    std::ifstream(file) >> word;
    return word;
}

/// Whether a part of a path is a PCI address, as "0000:3b:00.0".
bool is_pci_address(const std::string& part)
{
    constexpr std::string_view form = "xxxx:xx:xx.x"; // domains of five digits and more exist
    if (part.size() < form.size() || part.find_first_not_of("0123456789abcdef:.") != std::string::npos)
        return false;
    const std::size_t colon = part.find(':');
    return colon != std::string::npos && part.size() - colon == 8 && part[colon + 3] == ':' && part[colon + 6] == '.';
}

/// Names in a folder, in order; empty if it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder)
{
    std::error_code ignored;
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
        found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
}

/// Builds the trees from the paths of devices below /sys/devices.
class reader {
 public:
    reader(const fs::path& root, const interface_addresses& interfaces) : sys_(root / "sys"), interfaces_(interfaces) {}

    topology read()
    {
        for (const fs::path& device : entries_of(sys_ / "bus/pci/devices"))
            if (word_of(device / "vendor") == "0x10de" && word_of(device / "class").substr(0, 4) == "0x03")
                add(device, kind::gpu, "gpu" + std::to_string(gpus_++));
        for (const fs::path& device : entries_of(sys_ / "class/infiniband"))
            add(device, kind::nic, device.filename());
        for (const fs::path& interface : entries_of(sys_ / "class/net"))
            add_interface(interface);
        for (const fs::path& block : entries_of(sys_ / "class/block"))
            if (!fs::exists(block / "partition"))
                add(block, kind::drive, name_of_drive(block.filename()));
        return std::move(made_);
    }

 private:
    /// "nvme0n1" for a path of a multipath drive, "nvme0c1n1".
    static std::string name_of_drive(std::string name)
    {
        const std::size_t path = name.find('c', 4), space = name.find('n', 4);
        if (name.compare(0, 4, "nvme") == 0 && path != std::string::npos && space != std::string::npos && path < space)
            name.erase(path, space - path);
        return name;
    }

    /// Adds a device, if it is on PCI, with the bridges above it. Returns its node.
    std::optional<std::size_t> add(const fs::path& device, kind what, const std::string& name)
    {
        std::error_code failed;
        const fs::path real = fs::canonical(device, failed);
        std::vector<std::string> parts; // root, ports and bridges, the device
        fs::path folder;                // of the PCI device
        for (fs::path at; const fs::path& part : real) {
            at /= part;
            if (parts.empty() ? part.string().compare(0, 3, "pci") == 0 && part.string().find(':') != std::string::npos
                              : is_pci_address(part)) {
                parts.push_back(part);
                folder = at;
            }
        }
        if (failed || parts.size() < 2)
            return {};
        topology_node node{.what = what, .name = name, .address = parts.back()};
        if (made_.find(name)) // another path to a multipath drive
            node.name += '@' + node.address;
        for (std::size_t i = 0; i + 1 < parts.size(); ++i)
            node.parent = bridge(parts[i], i, node.parent);
        node.numa = std::atoi(word_of(folder / "numa_node").c_str());
        if (word_of(folder / "numa_node").empty())
            node.numa = -1;
        return made_.add(std::move(node));
    }

    std::size_t bridge(const std::string& name, std::size_t depth, std::optional<std::size_t> parent)
    {
        if (const auto found = made_.find(name))
            return *found;
        const kind what = depth == 0 ? kind::root : depth == 1 ? kind::port : kind::bridge;
        return made_.add({.what = what, .name = name, .address = depth == 0 ? "" : name, .parent = parent});
    }

    /// Adds a NIC, unless its RDMA device is there already, and its addresses.
    void add_interface(const fs::path& interface)
    {
        std::error_code failed;
        const std::string name = interface.filename();
        std::optional<std::size_t> nic;
        for (const fs::path& part : fs::canonical(interface, failed))
            if (is_pci_address(part))
                if (const auto found = made_.find(part.string()); found && made_.nodes()[*found].what == kind::nic)
                    nic = found;
        if (failed)
            return;
        if (!nic)
            nic = add(interface, kind::nic, name);
        const auto ip = interfaces_.find(name);
        if (nic && ip != interfaces_.end())
            made_.add_addresses(*nic, ip->second);
    }

    fs::path sys_;
    const interface_addresses& interfaces_;
    topology made_;
    unsigned gpus_ = 0;
};

} // namespace

interface_addresses addresses_of_interfaces()
{
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0)
        return {};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
    interface_addresses found;
    for (const ifaddrs* at = first; at; at = at->ifa_next) {
        const int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
        const void* bits = nullptr;
        if (family == AF_INET)
            bits = &reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr;
        else if (family == AF_INET6)
            bits = &reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr;
        std::array<char, INET6_ADDRSTRLEN> text{};
        if (bits && ::inet_ntop(family, bits, text.data(), text.size()))
            found[at->ifa_name].emplace_back(text.data());
    }
    return found;
}

topology read_topology(const fs::path& root, const interface_addresses& interfaces)
{
    return reader(root, interfaces).read();
}

} // namespace weftio::storage
