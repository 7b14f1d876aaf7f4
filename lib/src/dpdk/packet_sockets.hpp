// Finds net_af_packet's sockets, which DPDK does not expose.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace weftio::dpdk {

/// For log lines: what DPDK's driver does to packets, which AF_XDP does not.
inline constexpr const char* af_packet_alters =
    "AF_PACKET joins IPv4 fragments and turns 802.1ad tags into 802.1Q tags";

struct packet_socket {
    std::uint64_t inode = 0; ///< later sockets have larger numbers
    int descriptor = -1;

    auto operator<=>(const packet_socket&) const = default;
};

/// The packet sockets of this process that are bound to an interface, oldest first. Throws std::bad_alloc.
std::vector<packet_socket> packet_sockets();

/// Packets lost because the socket's ring was full, since the last call or since the socket was made. The call resets
/// the count.
std::uint64_t missed_since_asked(const packet_socket& socket) noexcept;

} // namespace weftio::dpdk
