#include "dpdk/interface_facts.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <memory>

#include "dpdk/link_messages.hpp"

namespace weftio::dpdk {

namespace {

/// Has the interface's driver fill in `answer`, whose `cmd` is set. Returns false if it cannot.
template <class Answer>
bool ethtool(const std::string& name, Answer& answer) noexcept
{
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&answer);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool answered = socket >= 0 && ::ioctl(socket, SIOCETHTOOL, &request) == 0;
    if (socket >= 0)
        ::close(socket);
    return answered;
}

/// The address as text; empty for an IPv6 link-local address, which Linux gives to every interface, and for other
/// families.
std::string text_of(const sockaddr* address)
{
    char text[INET6_ADDRSTRLEN] = "";
    if (address && address->sa_family == AF_INET)
        ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
    if (address && address->sa_family == AF_INET6)
        if (const in6_addr& of = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr; !IN6_IS_ADDR_LINKLOCAL(&of))
            ::inet_ntop(AF_INET6, &of, text, sizeof text);
    return text;
}

std::string address_of(const std::string& name)
{
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0)
        return {};
    const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(first, ::freeifaddrs);
    for (const ifaddrs* each = first; each; each = each->ifa_next)
        if (name == each->ifa_name)
            if (std::string text = text_of(each->ifa_addr); !text.empty())
                return text;
    return {};
}

} // namespace

unsigned queues_of(const std::string& name) noexcept
{
    ethtool_channels channels{};
    channels.cmd = ETHTOOL_GCHANNELS;
    return ethtool(name, channels) ? channels.rx_count + channels.combined_count : 0;
}

interface_facts read_facts(const std::string& name)
{
    interface_facts facts;
    ethtool_drvinfo driver{};
    driver.cmd = ETHTOOL_GDRVINFO;
    facts.is_virtual = ethtool(name, driver) && driver.bus_info[0] == 0;
    const link_socket requests(link_socket::use::requests);
    const link_report link = requests.ask(static_cast<int>(::if_nametoindex(name.c_str()))).value_or(link_report{});
    ethtool_channels channels{};
    channels.cmd = ETHTOOL_GCHANNELS;
    facts.has_channels = ethtool(name, channels);
    facts.combined_queues = channels.combined_count;
    facts.receive_queues =
        std::max(1u, facts.has_channels ? channels.rx_count + channels.combined_count : link.receive_queues);
    if (const std::string address = address_of(name); !address.empty())
        facts.used_by_linux = fmt::format("has the address {}", address);
    else if (link.has_master)
        facts.used_by_linux = "belongs to a bridge, a bond or the like";
    return facts;
}

} // namespace weftio::dpdk
