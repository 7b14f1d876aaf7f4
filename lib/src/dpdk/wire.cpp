#include "dpdk/wire.hpp"

#include <rte_ethdev.h>

#include <cerrno>

#include "dpdk/capture_writer.hpp"
#include "dpdk/packet_ring.hpp"
#include "dpdk/shared_wire.hpp"

namespace weftio::dpdk {

std::uint16_t wire::give(rte_mbuf** frames, std::uint16_t count) const noexcept
{
    if (file)
        return file->write(frames, count);
    if (shared)
        return shared->give(frames, count);
    if (ring)
        errno = 0;
    const std::uint16_t taken = rte_eth_tx_burst(port, queue, frames, count);
    if (ring)
        ring->send(taken, errno);
    return taken;
}

} // namespace weftio::dpdk
