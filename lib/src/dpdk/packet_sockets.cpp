#include "dpdk/packet_sockets.hpp"

#include <dirent.h>
#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace weftio::dpdk {

namespace {

bool is_bound_packet_socket(int descriptor)
{
    sockaddr_ll at{};
    socklen_t bytes = sizeof at;
    return ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&at), &bytes) == 0 && at.sll_family == AF_PACKET &&
           at.sll_ifindex != 0;
}

} // namespace

std::vector<packet_socket> packet_sockets()
{
    std::vector<packet_socket> found;
    std::unique_ptr<DIR, int (*)(DIR*)> all(::opendir("/proc/self/fd"), ::closedir);
    while (const dirent* entry = all ? ::readdir(all.get()) : nullptr) {
        const int descriptor = std::atoi(entry->d_name); // "." and ".." give 0, which is no socket of the driver
        struct stat status {};
        if (descriptor > 0 && is_bound_packet_socket(descriptor) && ::fstat(descriptor, &status) == 0)
            found.push_back({status.st_ino, descriptor});
    }
    std::ranges::sort(found);
    return found;
}

std::uint64_t missed_since_asked(const packet_socket& socket) noexcept
{
    tpacket_stats seen{};
    socklen_t bytes = sizeof seen;
    return ::getsockopt(socket.descriptor, SOL_PACKET, PACKET_STATISTICS, &seen, &bytes) == 0 ? seen.tp_drops : 0;
}

} // namespace weftio::dpdk
