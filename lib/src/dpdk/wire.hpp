// How frames leave through a queue of a DPDK port.
#pragma once

#include <cstdint>

struct rte_mempool;

namespace weftio::nic {

class capture_writer;
class packet_ring;

/// What a queue needs of the port it sends through.
struct wire {
    std::uint16_t port = 0, queue = 0;
    std::uint32_t mtu = 0, most_mtu = 0; ///< now, and the most that the driver can take
    capture_writer* file = nullptr;      ///< takes the frames instead of the driver, if there is one
    packet_ring* ring = nullptr;         ///< of net_af_packet
    rte_mempool* copies = nullptr;       ///< see packet_pools
    bool bounces = true;                 ///< the device reads the memory of headers
    bool empty_bursts = false; ///< the driver looks at what it has sent in a burst only, also in one of no frame
    int timestamp_offset = -1; ///< hardware sends on time: where an mbuf says when
    std::uint64_t timestamp_flag = 0;
};

} // namespace weftio::nic
