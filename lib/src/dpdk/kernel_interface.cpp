#include "dpdk/kernel_interface.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

namespace weftio::dpdk {

namespace {

struct file_closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

std::uint64_t growth(std::uint64_t before, std::uint64_t now) noexcept
{
    return now > before ? now - before : 0;
}

} // namespace

kernel_interface::kernel_interface(const std::string& name) noexcept
{
    if (name.empty() || name.size() >= IFNAMSIZ)
        return;
    socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    counters_ = ::open("/proc/thread-self/net/dev", O_RDONLY | O_CLOEXEC);
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    index_ = socket_ >= 0 && ::ioctl(socket_, SIOCGIFINDEX, &request) == 0 ? request.ifr_ifindex : 0;
    before_ = all_drops().value_or(drops{});
}

kernel_interface::~kernel_interface()
{
    for (int descriptor : {socket_, counters_})
        if (descriptor >= 0)
            ::close(descriptor);
}

kernel_interface::state kernel_interface::read_state() const noexcept
{
    state seen;
    ifreq request{};
    request.ifr_ifindex = index_;
    if (index_ == 0)
        return seen;
    if (::ioctl(socket_, SIOCGIFNAME, &request) != 0) {
        seen.there = errno != ENODEV;
        return seen;
    }
    ifreq answer = request; // an ioctl overwrites the other fields of its request
    if (::ioctl(socket_, SIOCGIFFLAGS, &answer) == 0)
        seen.up = (answer.ifr_flags & IFF_UP) != 0 && (answer.ifr_flags & IFF_RUNNING) != 0;
    answer = request;
    if (::ioctl(socket_, SIOCGIFMTU, &answer) == 0)
        seen.mtu = static_cast<std::uint32_t>(answer.ifr_mtu);
    return seen;
}

std::uint64_t kernel_interface::tx_dropped() const noexcept
{
    return growth(before_.sent, all_drops().value_or(before_).sent);
}

std::uint64_t kernel_interface::rx_dropped() const noexcept
{
    return growth(before_.received, all_drops().value_or(before_).received);
}

/// Parses both "drop" fields of a line of /proc/net/dev, from behind the name and its colon.
std::optional<kernel_interface::drops> kernel_interface::drops_in(const char* fields) noexcept
{
    drops found; // receive: bytes, packets, errors, drops and 4 more; then the same for transmit
    if (std::sscanf(fields, "%*u %*u %*u %" SCNu64 " %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &found.received,
                    &found.sent) != 2)
        return std::nullopt;
    return found;
}

std::optional<kernel_interface::drops> kernel_interface::all_drops() const noexcept
{
    ifreq request{};
    request.ifr_ifindex = index_;
    if (index_ == 0 || counters_ < 0 || ::ioctl(socket_, SIOCGIFNAME, &request) != 0)
        return std::nullopt;
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", counters_);
    const int again = ::open(path, O_RDONLY | O_CLOEXEC); // another open file, with its own offset
    std::unique_ptr<std::FILE, file_closer> file(again >= 0 ? ::fdopen(again, "r") : nullptr);
    const std::string_view name(request.ifr_name, ::strnlen(request.ifr_name, IFNAMSIZ));
    char line[512];
    while (file && std::fgets(line, sizeof line, file.get())) {
        const std::string_view text(line);
        const std::size_t begin = text.find_first_not_of(' '), colon = text.find(':');
        if (colon != std::string_view::npos && begin < colon && text.substr(begin, colon - begin) == name)
            return drops_in(line + colon + 1);
    }
    return std::nullopt;
}

} // namespace weftio::dpdk
