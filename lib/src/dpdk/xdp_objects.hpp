// What an AF_XDP port leaves open behind its driver's back.
#pragma once

#include <array>
#include <compare>
#include <vector>

namespace weftio::nic {

/// The name of one, by which all descriptors for it are known: "socket:[4711]", "map_id:\t7".
struct xdp_object {
    std::array<char, 48> name{};

    bool operator==(const xdp_object&) const = default;
};
using xdp_objects = std::vector<xdp_object>;

/// AF_XDP sockets, BPF maps and BPF programs that this process has open, as many as `into` has capacity for. Needs no
/// memory. A name is there once for each descriptor.
void list_xdp_objects(xdp_objects& into) noexcept;
/// All of them. Throws std::bad_alloc.
xdp_objects xdp_objects_open();
/// Closes every descriptor of this process for one of them. Needs no memory.
void close_descriptors(const xdp_objects& objects) noexcept;

} // namespace weftio::nic
