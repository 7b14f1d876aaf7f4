// The table of a wire's members.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wires/wire_file.hpp"

namespace weftio::wires {

using mac = std::array<std::uint8_t, 6>;
using gid = std::array<std::uint8_t, 16>;

/// The MAC of a member: locally administered, with the slot in its last byte. An earlier member of the slot had
/// another.
/// @param life  see slot_state
mac mac_of(unsigned slot, std::uint32_t life) noexcept;

/// What a member tells all processes about itself.
struct member_facts {
    unsigned slot = 0;
    mac address{};
    std::uint32_t process = 0;     ///< its id, in its own PID namespace
    std::uint32_t first_queue = 0; ///< its RDMA queue pairs have numbers from this one on
    std::uint32_t queues = 0;      ///< so many numbers; 0: none
    gid first_address{};           ///< of its RDMA port; zeros: none
};

/// The members of a wire, by slot, without those that were killed. Joins nothing; the list is empty if there is no such
/// wire. Blocks for some system calls; any thread.
/// @throws weftio::error errc::invalid_argument see path_of(); errc::permission_denied
std::vector<member_facts> members_of(std::string_view name, const std::string& folder = usual_folder);

/// The same for an open file. @param own  slot of the caller's member, whose lock the descriptor has
std::vector<member_facts> members_of(int descriptor, unsigned own = most_members);

} // namespace weftio::wires
