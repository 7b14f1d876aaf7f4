#include "dpdk/port_queue.hpp"

#include <rte_ethdev.h>

#include <cerrno>

#include "dpdk/capture_writer.hpp"
#include "dpdk/frame_dump.hpp"
#include "dpdk/packet_ring.hpp"
#include "dpdk/shared_wire.hpp"

namespace weftio::dpdk {

namespace {

/// Gives frames to whoever takes them.
std::uint16_t pass_on(const port_queue& to, rte_mbuf** frames, std::uint16_t count) noexcept
{
    if (to.file)
        return to.file->write(frames, count);
    if (to.shared)
        return to.shared->give(frames, count);
    if (to.ring)
        errno = 0;
    const std::uint16_t taken = rte_eth_tx_burst(to.port, to.queue, frames, count);
    if (to.ring)
        to.ring->send(taken, errno);
    return taken;
}

} // namespace

std::uint16_t port_queue::give(rte_mbuf** frames, std::uint16_t count) const noexcept
{
    if (dump) [[unlikely]]
        return dump->sent(frames, count, [&](rte_mbuf** all, std::uint16_t some) { return pass_on(*this, all, some); });
    return pass_on(*this, frames, count);
}

std::uint16_t port_queue::give_back(rte_mbuf** frames, std::uint16_t count) const noexcept
{
    if (dump)
        dump->sent(frames, count, [](rte_mbuf**, std::uint16_t some) { return some; });
    const std::uint16_t kept = shared ? shared->lose_some(frames, count) : count;
    if (dump)
        dump->received(frames, kept);
    return kept;
}

bool port_queue::is_watched() const noexcept
{
    return dump != nullptr || (shared != nullptr && shared->is_lossy());
}

bool port_queue::is_under_way(const std::array<std::uint8_t, 6>& to, std::uint64_t& sent) const noexcept
{
    return shared != nullptr && shared->member().is_unread(to, sent);
}

std::uint16_t port_queue::take(rte_mbuf** packets, std::uint16_t most) const noexcept
{
    const std::uint16_t taken = shared ? shared->take(packets, most) : rte_eth_rx_burst(port, queue, packets, most);
    if (dump && taken != 0)
        dump->received(packets, taken);
    return taken;
}

} // namespace weftio::dpdk
