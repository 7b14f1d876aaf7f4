#include "dpdk/interface_settings.hpp"

#include <fmt/format.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/log.hpp"

namespace weftio::dpdk {

namespace {

/// Fills in the name of the interface with that index. Returns whether it still exists.
bool find(int socket, int index, ifreq& request) noexcept
{
    request.ifr_ifindex = index;
    return index != 0 && ::ioctl(socket, SIOCGIFNAME, &request) == 0;
}

void tell_of(const ifreq& request, const char* what) noexcept
{
    const int why = errno;
    core::log_or_lose(log_level::warning, [&] {
        return fmt::format("weftio: interface {}: cannot restore its {} ({}); set it with \"ip link set {} ...\"",
                           request.ifr_name, what, std::strerror(why), request.ifr_name);
    });
}

} // namespace

interface_settings::interface_settings(const std::string& name) noexcept
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        return;
    socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    index_ = socket_ >= 0 && ::ioctl(socket_, SIOCGIFINDEX, &request) == 0 ? request.ifr_ifindex : 0;
    before_ = read_state();
}

interface_settings::~interface_settings()
{
    if (socket_ >= 0)
        ::close(socket_);
}

void interface_settings::restore() noexcept
{
    const values changed = std::exchange(changed_, {}), at_end = std::exchange(at_end_, {}), now = read_state();
    if (!before_.known || !changed.known || !now.known)
        return;
    if (now.mtu == changed.mtu && now.mtu != before_.mtu)
        set_mtu(before_.mtu);
    const bool others_set_it = at_end.known && at_end.promiscuous != changed.promiscuous;
    if (!others_set_it && now.promiscuous != before_.promiscuous)
        set_promiscuous(before_.promiscuous);
}

interface_settings::values interface_settings::read_state() const noexcept
{
    ifreq request{};
    if (!find(socket_, index_, request))
        return {};
    ifreq flags = request, mtu = request; // an ioctl overwrites the other fields of its request
    if (::ioctl(socket_, SIOCGIFFLAGS, &flags) != 0 || ::ioctl(socket_, SIOCGIFMTU, &mtu) != 0)
        return {};
    return {.known = true, .promiscuous = (flags.ifr_flags & IFF_PROMISC) != 0, .mtu = mtu.ifr_mtu};
}

void interface_settings::set_mtu(int mtu) const noexcept
{
    ifreq request{};
    if (!find(socket_, index_, request))
        return;
    request.ifr_mtu = mtu;
    if (::ioctl(socket_, SIOCSIFMTU, &request) != 0)
        tell_of(request, "MTU");
}

void interface_settings::set_promiscuous(bool on) const noexcept
{
    ifreq request{};
    if (!find(socket_, index_, request) || ::ioctl(socket_, SIOCGIFFLAGS, &request) != 0)
        return;
    const int flags = on ? request.ifr_flags | IFF_PROMISC : request.ifr_flags & ~IFF_PROMISC;
    request.ifr_flags = static_cast<short>(flags);
    if (::ioctl(socket_, SIOCSIFFLAGS, &request) != 0)
        tell_of(request, "promiscuous mode");
}

} // namespace weftio::dpdk
