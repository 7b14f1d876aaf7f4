#include "dpdk/spec_parts.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <linux/if_packet.h>
#include <optional>

#include "weftio/error.hpp"

namespace weftio::dpdk {

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

const std::string& plain(std::string_view spec, const std::string& value)
{
    if (value.find_first_of(",=[]") != std::string::npos)
        throw error(errc::invalid_argument, fmt::format("weftio: port {}: DPDK does not accept a name with , = [ ] in "
                                                        "it ({}); use another name, or a symbolic link to a file",
                                                        spec, value));
    return value;
}

namespace {

/// The type of the interface's addresses (ARPHRD_*); nothing if it cannot be read.
std::optional<unsigned> type_of_address(const std::string& interface)
{
    ifreq request{};
    interface.copy(request.ifr_name, IFNAMSIZ - 1);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool answered = socket >= 0 && ::ioctl(socket, SIOCGIFHWADDR, &request) == 0;
    if (socket >= 0)
        ::close(socket);
    return answered ? std::optional<unsigned>(request.ifr_hwaddr.sa_family) : std::nullopt;
}

/// Refuses an interface whose frames have no Ethernet header: their first bytes would be taken for MAC addresses.
void require_ethernet(std::string_view spec, const std::string& name)
{
    const unsigned type = type_of_address(name).value_or(ARPHRD_ETHER);
    if (type != ARPHRD_ETHER && type != ARPHRD_LOOPBACK)
        throw error(errc::not_supported,
                    fmt::format("weftio: port {}: the frames of {} have no Ethernet header (its address type is {}), "
                                "as on tun, WireGuard and other tunnels; name the interface below the tunnel, or one "
                                "of Ethernet, such as a veth or tap",
                                spec, name, type));
}

} // namespace

void require_interface(std::string_view spec, const std::string& name)
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: an interface name has 1 to {} characters; name one of: {}", spec,
                                IFNAMSIZ - 1, interface_names()));
    if (!if_nametoindex(name.c_str()))
        throw error(errc::not_found,
                    fmt::format("weftio: port {}: no such interface (have: {}); name one of these, create it with "
                                "\"ip link add {} type veth peer name {}p\", or run in its network namespace "
                                "(\"ip netns exec\")",
                                spec, interface_names(), name, name));
    require_ethernet(spec, name);
}

void require_raw_sockets(std::string_view spec)
{
    int socket = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (socket < 0)
        throw error(
            errc::permission_denied,
            fmt::format(
                "weftio: port {}: raw sockets are refused ({}); run as root, or give the program the capability with "
                "\"setcap cap_net_raw,cap_net_admin+ep PROGRAM\"",
                spec, std::strerror(errno)));
    close(socket);
}

} // namespace weftio::dpdk
