#include "dpdk/spec_parts.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <linux/if_packet.h>

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

void require_interface(std::string_view spec, const std::string& name)
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        throw error(errc::invalid_argument,
                    fmt::format("weftio: port {}: an interface name has 1 to {} characters; name one of: {}", spec,
                                IFNAMSIZ - 1, interface_names()));
    if (!if_nametoindex(name.c_str()))
        throw error(errc::not_found,
                    fmt::format("weftio: port {}: no such interface (have: {}); name one of these or create it with "
                                "\"ip link add {} type veth peer name {}p\"",
                                spec, interface_names(), name, name));
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
