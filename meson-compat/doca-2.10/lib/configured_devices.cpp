// Which devices there are: the environment variable WEFTIO_DOCA_DEVICES.
#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "dev.hpp"

namespace weftio::doca {
namespace {

constexpr const char* variable = "WEFTIO_DOCA_DEVICES";
constexpr const char* standard_file = "/etc/weftio/doca-devices";

std::string trimmed(std::string text)
{
    constexpr const char* spaces = " \t\r";
    text.erase(0, text.find_first_not_of(spaces));
    text.erase(text.find_last_not_of(spaces) + 1);
    return text;
}

std::string content_of(const std::string& path)
{
    std::error_code unknown;
    require(!std::filesystem::is_directory(path, unknown), DOCA_ERROR_BAD_CONFIG,
            "{}={}: it is a folder; name a file with one device a line", variable, path);
    std::ifstream file(path);
    require(file.good(), DOCA_ERROR_BAD_CONFIG, "{}={}: the file cannot be read: {}", variable, path,
            std::strerror(errno));
    return {std::istreambuf_iterator<char>(file), {}};
}

/// The entries, a line each.
std::string configuration()
{
    const char* value = std::getenv(variable);
    if (!value || !*value)
        return std::ifstream(standard_file).good() ? content_of(standard_file) : "";
    if (*value == '/' || *value == '.')
        return content_of(value);
    std::string text = value;
    std::replace(text.begin(), text.end(), ';', '\n');
    return text;
}

/// The one object for these values: pointers to it stay valid, and equal, in all lists.
std::shared_ptr<doca_devinfo> interned(const std::string& pci, const std::string& ibdev, const std::string& address,
                                       const std::string& spec)
{
    std::shared_ptr<doca_devinfo> same;
    living<doca_devinfo>::any([&](const std::shared_ptr<doca_devinfo>& info) {
        if (info->pci == pci && info->ibdev == ibdev && info->address == address && info->spec == spec)
            same = info;
        return same != nullptr;
    });
    if (same)
        return same;
    auto info = std::make_shared<doca_devinfo>();
    info->pci = pci;
    info->ibdev = ibdev;
    info->address = address;
    info->spec = spec;
    living<doca_devinfo>::add(info);
    return info;
}

/// One device: PCI[,IBNAME[,ADDRESS]]=SPEC.
std::shared_ptr<doca_devinfo> parsed(const std::string& line)
{
    static const std::regex form{R"(([^,=]+)(,([^=,]*))?(,([^=,]+))?=(.+))"};
    std::smatch parts;
    require(std::regex_match(line, parts, form), DOCA_ERROR_BAD_CONFIG,
            "{}: \"{}\" is no device; write PCI[,IBNAME[,ADDRESS]]=PORT, as in 0000:b5:00.0,mlx5_0=iface:eth0",
            variable, line);
    const std::string pci = whole_pci_address(trimmed(parts[1]));
    require(!pci.empty(), DOCA_ERROR_BAD_CONFIG, "{}: \"{}\" is no PCI address; write one as in 0000:b5:00.0", variable,
            trimmed(parts[1]));
    const std::string ibdev = trimmed(parts[3]);
    require(ibdev.size() < DOCA_DEVINFO_IBDEV_NAME_SIZE, DOCA_ERROR_BAD_CONFIG, "{}: \"{}\" is longer than {} letters",
            variable, ibdev, DOCA_DEVINFO_IBDEV_NAME_SIZE - 1);
    const std::string address = trimmed(parts[5]);
    in6_addr bytes{};
    require(address.empty() || inet_pton(AF_INET, address.c_str(), &bytes) == 1 ||
                inet_pton(AF_INET6, address.c_str(), &bytes) == 1,
            DOCA_ERROR_BAD_CONFIG, "{}: \"{}\" is no IPv4 or IPv6 address", variable, address);
    return interned(pci, ibdev, address, trimmed(parts[6]));
}

} // namespace

std::string whole_pci_address(std::string_view text)
{
    static const std::regex form{"([0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]"};
    std::string address(text);
    std::transform(address.begin(), address.end(), address.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    if (!std::regex_match(address, form))
        return {};
    return address.size() == std::strlen("b5:00.0") ? "0000:" + address : address;
}

std::vector<std::shared_ptr<doca_devinfo>> configured_devices()
{
    std::vector<std::shared_ptr<doca_devinfo>> devices;
    const std::string text = configuration();
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        at = end + 1;
        line = trimmed(line.substr(0, line.find('#')));
        if (line.empty())
            continue;
        auto device = parsed(line);
        for (const auto& earlier : devices) {
            require(earlier->pci != device->pci, DOCA_ERROR_BAD_CONFIG, "{} names {} twice", variable, device->pci);
            require(device->ibdev.empty() || earlier->ibdev != device->ibdev, DOCA_ERROR_BAD_CONFIG,
                    "{} gives the RDMA name {} to {} and to {}; give each device a name of its own", variable,
                    device->ibdev, earlier->pci, device->pci);
        }
        devices.push_back(std::move(device));
    }
    return devices;
}

} // namespace weftio::doca
