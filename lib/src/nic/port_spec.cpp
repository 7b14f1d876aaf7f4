#include "nic/port_spec.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <linux/if_packet.h>
#include <regex>

#include "nic/capture.hpp"
#include "weftio/error.hpp"

namespace weftio::nic {

namespace {

constexpr std::string_view known_forms =
    "pcap:FILE, pcap:rx=FILE,tx=FILE, pcap:builtin, iface:NAME, tap:NAME, loopback, null, a PCI address, or DPDK devargs such as "
    "net_null0,size=64";

/// DPDK wants every virtual device to have a name of its own. Short, because net_ring puts more in front of it and has 28
/// characters for all.
std::string device_name(std::string_view driver)
{
    static std::atomic<unsigned> made{0};
    return fmt::format("{}_w{}", driver, made.fetch_add(1, std::memory_order_relaxed));
}

std::string interface_names()
{
    std::string names;
    if (auto* all = if_nameindex()) {
        for (auto* each = all; each->if_index; ++each)
            names += fmt::format("{}{}", names.empty() ? "" : ", ", each->if_name);
        if_freenameindex(all);
    }
    return names.empty() ? "none" : names;
}

void require_interface(std::string_view spec, const std::string& name)
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: an interface name has 1 to {} characters; name one of: {}", spec, IFNAMSIZ - 1,
                                interface_names()));
    if (!if_nametoindex(name.c_str()))
        throw error(errc::not_found, fmt::format("weftio: port {}: no such interface (have: {}); name one of these or create it with "
                                                 "\"ip link add {} type veth peer name {}p\"",
                                                 spec, interface_names(), name, name));
}

void require_raw_sockets(std::string_view spec)
{
    int socket = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (socket < 0)
        throw error(errc::permission_denied,
                    fmt::format("weftio: port {}: raw sockets are refused ({}); run as root, or give the program the capability with "
                                "\"setcap cap_net_raw,cap_net_admin+ep PROGRAM\"",
                                spec, std::strerror(errno)));
    close(socket);
}

port_spec interface_spec(std::string_view spec, const std::string& name)
{
    require_interface(spec, name);
    require_raw_sockets(spec);
    return {.candidates = {{device_name("net_af_xdp"), fmt::format("iface={}", name)},
                           {device_name("net_af_packet"), fmt::format("iface={},blocksz=65536,framesz=2048,framecnt=2048", name)}},
            .interface = name,
            .capture = {},
            .needs_raw_sockets = true};
}

port_spec tap_spec(std::string_view spec, const std::string& name)
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: a tap interface's name has 1 to {} characters", spec, IFNAMSIZ - 1));
    if (if_nametoindex(name.c_str()))
        throw error(errc::in_use, fmt::format("weftio: port {}: interface {} exists already; choose another name, or open it with iface:{}",
                                              spec, name, name));
    if (access("/dev/net/tun", R_OK | W_OK) != 0)
        throw error(errno == ENOENT ? errc::not_found : errc::permission_denied,
                    fmt::format("weftio: port {}: /dev/net/tun: {}; run as root, and load the module with \"modprobe tun\"", spec,
                                std::strerror(errno)));
    require_raw_sockets(spec);
    return {.candidates = {{device_name("net_tap"), fmt::format("iface={}", name)}}, .interface = name, .capture = {}};
}

/// A file name as a devargs value; DPDK splits on commas and cannot quote.
const std::string& plain_path(std::string_view spec, const std::string& path)
{
    if (path.find_first_of(",=[]") != std::string::npos)
        throw error(errc::invalid_argument, fmt::format("weftio: port {}: DPDK cannot take a path with one of , = [ ] in it ({}); use "
                                                        "another name or a symbolic link",
                                                        spec, path));
    return path;
}

void require_writable(std::string_view spec, const std::string& path)
{
    std::FILE* file = std::fopen(path.c_str(), "ab");
    if (!file)
        throw error(errno == EACCES ? errc::permission_denied : errc::not_found,
                    fmt::format("weftio: port {}: cannot write {}: {}", spec, path, std::strerror(errno)));
    std::fclose(file);
}

port_spec capture_spec(std::string_view spec, std::string_view words)
{
    static const std::regex two_files("(?:rx=([^,]*))?,?(?:tx=([^,]*))?");
    std::string rx{words}, tx;
    std::match_results<std::string_view::const_iterator> match;
    if ((words.starts_with("rx=") || words.starts_with("tx=")) && std::regex_match(words.begin(), words.end(), match, two_files)) {
        rx = match[1];
        tx = match[2];
    }
    if (rx.empty() && tx.empty())
        throw error(errc::invalid_argument, fmt::format("weftio: port {}: no file named; write pcap:FILE or pcap:rx=FILE,tx=FILE", spec));
    if (rx == "builtin")
        rx = builtin_capture_path();
    std::string arguments;
    if (!rx.empty()) {
        require_capture(spec, rx);
        arguments = "rx_pcap=" + plain_path(spec, rx);
    }
    if (!tx.empty()) {
        require_writable(spec, tx);
        arguments += fmt::format("{}tx_pcap={}", arguments.empty() ? "" : ",", plain_path(spec, tx));
    }
    return {.candidates = {{device_name("net_pcap"), arguments}}, .interface = {}, .capture = rx};
}

bool is_pci_address(const std::string& text)
{
    static const std::regex address("([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7](,.*)?");
    return std::regex_match(text, address);
}

port_spec devargs_spec(std::string_view spec)
{
    std::string text{spec};
    auto comma = text.find(',');
    std::string name = text.substr(0, comma);
    std::string arguments = comma == std::string::npos ? "" : text.substr(comma + 1);
    static const std::regex interface_argument("(?:^|,)iface=([^,]*)");
    std::smatch match;
    port_spec result{.candidates = {{name, arguments, is_pci_address(text)}}, .interface = {}, .capture = {}};
    bool takes_interface = name.starts_with("net_af_packet") || name.starts_with("net_af_xdp");
    if (takes_interface && std::regex_search(arguments, match, interface_argument)) {
        result.interface = match[1];
        require_interface(spec, result.interface);
        require_raw_sockets(spec);
    }
    return result;
}

} // namespace

port_spec parse_port_spec(std::string_view spec)
{
    auto after = [&](std::string_view prefix) { return std::string(spec.substr(prefix.size())); };
    if (spec.starts_with("pcap:"))
        return capture_spec(spec, after("pcap:"));
    if (spec.starts_with("iface:"))
        return interface_spec(spec, after("iface:"));
    if (spec.starts_with("tap:"))
        return tap_spec(spec, after("tap:"));
    if (spec == "loopback")
        return {.candidates = {{device_name("net_ring"), ""}}, .interface = {}, .capture = {}};
    if (spec == "null")
        return {.candidates = {{device_name("net_null"), "size=64"}}, .interface = {}, .capture = {}};
    if (spec.empty() || spec.find(' ') != std::string_view::npos || (spec.find(':') != std::string_view::npos && !is_pci_address(std::string(spec)) &&
                                                                     spec.find(',') == std::string_view::npos))
        throw error(errc::invalid_argument, fmt::format("weftio: port \"{}\": not a form that is known; write {}", spec, known_forms));
    return devargs_spec(spec);
}

} // namespace weftio::nic
