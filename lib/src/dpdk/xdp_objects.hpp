// Finds and closes what DPDK's af_xdp driver leaves open.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

namespace weftio::dpdk {

/// Names an object; all descriptors for one object have the same name: "socket:[4711]", "map_id:\t7".
struct xdp_object {
    std::array<char, 48> name{};

    bool operator==(const xdp_object&) const = default;
};
using xdp_objects = std::vector<xdp_object>;

/// Lists the AF_XDP sockets, BPF maps and BPF programs that this process has open, up to the capacity of `into`.
/// Allocates nothing. A name appears once for each descriptor.
void list_xdp_objects(xdp_objects& into) noexcept;
/// Lists all of them. Throws std::bad_alloc.
xdp_objects xdp_objects_open();
/// Closes every descriptor of this process for one of the objects. Allocates nothing.
void close_descriptors(const xdp_objects& objects) noexcept;

/// The descriptors of the AF_XDP sockets among the objects, one for each socket. Throws std::bad_alloc.
std::vector<int> sockets_among(const xdp_objects& objects);
/// Packets that Linux has lost at an AF_XDP socket since it was made: no room in its receive ring, no buffer in its
/// fill ring, or longer than a buffer. Reading changes nothing.
std::uint64_t lost_at(int socket) noexcept;

} // namespace weftio::dpdk
