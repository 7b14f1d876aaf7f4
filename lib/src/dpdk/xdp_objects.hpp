// Finds and closes what DPDK's af_xdp driver leaves open.
#pragma once

#include <array>
#include <compare>
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

} // namespace weftio::dpdk
