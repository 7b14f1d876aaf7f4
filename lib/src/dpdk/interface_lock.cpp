#include "dpdk/interface_lock.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "dpdk/bounded_retry.hpp"
#include "weftio/error.hpp"

namespace weftio::dpdk {

namespace {

/// Binds a socket to that name. Returns -1 and sets errno on failure.
int named_socket(const std::string& name) noexcept
{
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int result = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (result < 0 || bind(result, reinterpret_cast<sockaddr*>(&address), bytes) == 0)
        return result;
    const int reason = errno;
    close(result);
    errno = reason;
    return -1;
}

} // namespace

interface_lock::interface_lock(std::string_view spec, const std::string& interface)
{
    const std::string name = fmt::format("weftio/interface/{}", interface);
    int reason = 0;
    bounded_retry([&] {
        socket_ = named_socket(name);
        reason = errno;
        return socket_ >= 0 || reason != EADDRINUSE;
    });
    if (socket_ >= 0)
        return;
    if (reason == EADDRINUSE)
        throw error(errc::in_use, fmt::format("weftio: port {}: interface {} is already open in a Weftio port; close "
                                              "that port first, or name another interface",
                                              spec, interface));
    throw error(errc::device_error, fmt::format("weftio: port {}: interface {} cannot be claimed, for want of a socket "
                                                "({}); raise the limit on open descriptors (ulimit -n)",
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

} // namespace weftio::dpdk
