#include "nic/interface_lock.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <utility>

#include "weftio/error.hpp"

namespace weftio::nic {

interface_lock::interface_lock(std::string_view spec, const std::string& interface)
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::string name = fmt::format("weftio/interface/{}", interface);
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_ >= 0 && bind(socket_, reinterpret_cast<sockaddr*>(&address), bytes) == 0)
        return;
    int reason = errno;
    if (socket_ >= 0)
        close(socket_);
    throw error(errc::in_use,
                fmt::format("weftio: port {}: interface {} is already open in a Weftio port ({}); close that port first, or "
                            "name another interface",
                            spec, interface, std::strerror(reason)));
}

interface_lock& interface_lock::operator=(interface_lock&& other) noexcept
{
    std::swap(socket_, other.socket_);
    return *this;
}

interface_lock::~interface_lock()
{
    if (socket_ >= 0)
        close(socket_);
}

} // namespace weftio::nic
