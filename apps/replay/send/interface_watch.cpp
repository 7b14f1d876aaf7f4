#include "send/interface_watch.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

interface_watch::interface_watch(const std::string& spec) : interface_(interface_of(spec))
{
    if (!interface_.empty() && interface_.size() < IFNAMSIZ)
        socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

interface_watch::~interface_watch()
{
    if (socket_ >= 0)
        ::close(socket_);
}

std::string interface_watch::trouble() const
{
    ifreq request{};
    interface_.copy(request.ifr_name, IFNAMSIZ - 1);
    if (socket_ < 0 || ::ioctl(socket_, SIOCGIFFLAGS, &request) == 0 || errno != ENODEV)
        return {};
    return fmt::format("weftio-replay: interface {} is gone; frames of the last millisecond may be lost", interface_);
}

} // namespace weftio::replay
