// Requests of a peer that wait until copies of earlier ones are made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "net/roce_headers.hpp"

namespace weftio::nic::soft {

/// Copies of packets, the oldest first. One thread only.
class postponed_requests {
 public:
    /// As many as a peer of the software NIC has in flight at most, twice.
    static constexpr std::size_t most = 256;

    bool empty() const noexcept { return packets_.empty(); }
    /// @return false: there is no room, and the packet is as good as lost
    bool keep(const net::roce_packet& packet)
    {
        if (packets_.size() == most)
            return false;
        kept& made = packets_.emplace_back(kept{packet, {packet.payload.begin(), packet.payload.end()}});
        made.packet.payload = made.payload;
        made.packet.covered = {};
        return true;
    }
    const net::roce_packet& oldest() const noexcept { return packets_.front().packet; }
    void drop_oldest() noexcept { packets_.pop_front(); }

 private:
    struct kept {
        net::roce_packet packet;
        std::vector<std::uint8_t> payload;
    };
    std::deque<kept> packets_; // never moves an element
};

} // namespace weftio::nic::soft
