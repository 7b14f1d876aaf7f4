// Where a datagram goes, as its entry says.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/refusal.hpp"
#include "net/roce_front.hpp"
#include "nic/rdma_backend.hpp"
#include "nic/soft/work/entry.hpp"

namespace weftio::nic::soft {

/// The headers for one datagram after another. Those of the last one are kept, because many go to the same peer.
class datagram_route {
 public:
    /// Reads the datagram segment of an entry.
    /// @param entry    its segments: the datagram segment is the second to fourth
    /// @param sources  see rdma_connection
    /// @param queue    number of the sending queue pair
    /// @return wrong_source, or none
    refusal aim(const ring_segments& entry, const std::vector<rdma_own_address>& sources, std::uint32_t queue);

    // Of the datagram that was aimed last. @pre aim() has returned none
    net::roce_front& front() noexcept { return front_; }
    const net::roce_gid& destination() const noexcept { return path_.destination; }
    std::uint16_t vlan() const noexcept { return path_.tag_count == 0 ? no_vlan : vlan_of(path_.tags[0].tci); }
    std::uint32_t peer_queue() const noexcept;
    /// The Q_Key that the entry names.
    std::uint32_t queue_key() const noexcept;

 private:
    using words = std::array<std::uint32_t, 12>; ///< the segment, in memory order

    words segment_{};
    net::roce_path path_;
    net::roce_front front_{path_};
};

} // namespace weftio::nic::soft
