// The one way into a port.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

#include "dpdk/shared_wire.hpp"

namespace weftio::dpdk {

/// A port queue that an engine receives from.
struct receive_source {
    std::uint16_t port, queue;
    shared_wire* shared = nullptr; ///< brings the packets instead of the driver; nullptr: the driver does
};

/// Takes at most `most` packets from the driver, or from the wire. Never blocks. Returns how many it took; their mbufs
/// are the caller's. Only the engine of the port queue calls it.
inline std::uint16_t receive_burst(const receive_source& from, rte_mbuf** packets, std::uint16_t most) noexcept
{
    if (from.shared) [[unlikely]]
        return from.shared->take(packets, most);
    return rte_eth_rx_burst(from.port, from.queue, packets, most);
}

} // namespace weftio::dpdk
