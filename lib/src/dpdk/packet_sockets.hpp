// The sockets inside net_af_packet, which DPDK does not show.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace weftio::nic {

struct packet_socket {
    std::uint64_t inode = 0; ///< grows from socket to socket
    int descriptor = -1;

    auto operator<=>(const packet_socket&) const = default;
};

/// Packet sockets of this process that are bound to an interface, in the order of their making. Throws std::bad_alloc.
std::vector<packet_socket> packet_sockets();

/// Packets that the socket's ring had no room for, since it was made or somebody asked: asking sets it to 0.
std::uint64_t missed_since_asked(const packet_socket& socket) noexcept;

} // namespace weftio::nic
