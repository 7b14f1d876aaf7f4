#include "send/port_watch.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace weftio::replay {

namespace {

std::string interface_of(const std::string& spec)
{
    for (const char* key : {"iface:", "iface="}) {
        std::size_t at = spec.find(key);
        if (at == 0 || (at != std::string::npos && spec[at - 1] == ','))
            return spec.substr(at + std::strlen(key), spec.find(',', at) - at - std::strlen(key));
    }
    return {};
}

} // namespace

port_watch::port_watch(const std::string& spec) : interface_(interface_of(spec))
{
    if (!interface_.empty() && interface_.size() < IFNAMSIZ)
        socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

port_watch::~port_watch()
{
    if (socket_ >= 0)
        ::close(socket_);
}

/// An interface that is being removed is down for a moment first: it is looked at again before it is called that.
std::string port_watch::trouble() const
{
    constexpr int looks = 20;
    constexpr std::chrono::milliseconds between(10);
    for (int look = 0; look < looks && socket_ >= 0; ++look) {
        ifreq request{};
        interface_.copy(request.ifr_name, IFNAMSIZ - 1);
        if (::ioctl(socket_, SIOCGIFFLAGS, &request) != 0)
            return errno == ENODEV
                       ? fmt::format("weftio-replay: interface {} has gone; frames of the last millisecond may be lost",
                                     interface_)
                       : std::string{};
        if (request.ifr_flags & IFF_UP)
            return {};
        std::this_thread::sleep_for(between);
    }
    return socket_ < 0 ? std::string{}
                       : fmt::format("weftio-replay: interface {} is down; bring it up with \"ip link set {} up\"", interface_,
                                     interface_);
}

} // namespace weftio::replay
