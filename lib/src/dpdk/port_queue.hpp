// A queue of a DPDK port: the way out, and the way in.
#pragma once

#include <array>
#include <cstdint>

struct rte_mbuf;
struct rte_mempool;

namespace weftio::dpdk {

class capture_writer;
class frame_dump;
class packet_ring;
class shared_wire;
class xdp_hook;

/// What a unit that sends or receives needs to know of its port queue.
struct port_queue {
    /// Gives frames to the driver, or to the capture file: the one way out of a port. Never blocks. Returns how many it
    /// took, from the first one on; those are the driver's. Only the engine of the port queue calls it.
    std::uint16_t give(rte_mbuf** frames, std::uint16_t count) const noexcept;
    /// Takes packets from the driver, or from the wire in shared memory: the one way into a port. Never blocks. Returns
    /// how many it took; their mbufs are the caller's. Only the engine of the port queue calls it.
    std::uint16_t take(rte_mbuf** packets, std::uint16_t most) const noexcept;

    /// Passes frames from this port to itself: notes them in the dump, and loses what the wire loses. Returns how many
    /// arrive; they are at the front. Only the engine of the port queue calls it.
    std::uint16_t give_back(rte_mbuf** frames, std::uint16_t count) const noexcept;
    /// Whether the other end of a wire in memory has yet to read frames to its MAC, see packet_sink::is_under_way().
    /// Nobody knows that of another port: false. Only the engine of the port queue calls it.
    bool is_under_way(const std::array<std::uint8_t, 6>& to, std::uint64_t& sent) const noexcept;
    /// Whether frames are dumped, or lost on purpose: then nothing may go past give(), take() and give_back().
    bool is_watched() const noexcept;

    std::uint16_t port = 0, queue = 0;
    std::uint32_t mtu = 0, most_mtu = 0; ///< the current MTU, and the largest that the driver can take
    capture_writer* file = nullptr;      ///< takes the frames instead of the driver, if the port writes a capture
    packet_ring* ring = nullptr;         ///< net_af_packet only
    frame_dump* dump = nullptr;          ///< notes all frames, if the port has one
    xdp_hook* hook = nullptr;            ///< net_af_xdp only
    shared_wire* shared = nullptr;       ///< takes and brings the frames instead of the driver, for a wire in memory
    rte_mempool* copies = nullptr;       ///< see packet_pools
    bool bounces = true;                 ///< the device can read send headers, so short copies are sent from there
    bool apart = false;        ///< kernels run on other cores than the engine, so lines of rings cross between them
    bool empty_bursts = false; ///< the driver returns sent mbufs only inside a burst call, also one of no frames
    int timestamp_offset = -1; ///< where an mbuf holds its send time, if the driver sends at timestamps; else -1
    std::uint64_t timestamp_flag = 0;
};

} // namespace weftio::dpdk
