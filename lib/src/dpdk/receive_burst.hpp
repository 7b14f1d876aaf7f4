// The way of packets into an engine.
#pragma once

#include <rte_ethdev.h>

#include <cstdint>

#include "dpdk/port_queue.hpp"

namespace weftio::dpdk {

/// port_queue::take(), in line where a driver brings the packets.
inline std::uint16_t receive_burst(const port_queue& from, rte_mbuf** packets, std::uint16_t most) noexcept
{
    if (from.shared || from.dump) [[unlikely]]
        return from.take(packets, most);
    return rte_eth_rx_burst(from.port, from.queue, packets, most);
}

} // namespace weftio::dpdk
