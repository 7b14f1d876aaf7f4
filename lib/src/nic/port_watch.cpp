#include "nic/port_watch.hpp"

#include <net/if.h>
#include <rte_ethdev.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "core/clock.hpp"

namespace weftio::nic {

namespace {

constexpr std::uint64_t between_looks_ns = 20'000'000;

/// Of the interface of that name, in the socket's network; 0 when there is none.
int index_of(int socket, const std::string& interface) noexcept
{
    ifreq request{};
    interface.copy(request.ifr_name, IFNAMSIZ - 1);
    return ioctl(socket, SIOCGIFINDEX, &request) == 0 ? request.ifr_ifindex : 0;
}

} // namespace

port_watch::port_watch(std::uint16_t port, const std::string& interface) noexcept : port_(port)
{
    if (interface.empty() || interface.size() >= IFNAMSIZ)
        return;
    socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    index_ = socket_ >= 0 ? index_of(socket_, interface) : 0;
}

port_watch::~port_watch()
{
    if (socket_ >= 0)
        close(socket_);
}

bool port_watch::has_just_gone(bool busy) noexcept
{
    constexpr unsigned turns_between_looks = 64; // of a busy engine; others may have to wait for a core before each turn
    if (gone() ||
        (rte_eth_dev_is_valid_port(port_) && ((++turns_ % turns_between_looks != 0 && busy) || !is_time() || is_there())))
        return false;
    gone_.store(true, std::memory_order_release);
    return true;
}

bool port_watch::is_time() noexcept
{
    std::uint64_t now_ns = detail::utc_now_ns();
    if (now_ns < next_look_ns_)
        return false;
    next_look_ns_ = now_ns + between_looks_ns;
    return true;
}

bool port_watch::is_there() const noexcept
{
    if (rte_eth_dev_is_removed(port_) == 1)
        return false;
    ifreq request{};
    request.ifr_ifindex = index_;
    return index_ == 0 || ioctl(socket_, SIOCGIFNAME, &request) == 0 || errno != ENODEV;
}

} // namespace weftio::nic
