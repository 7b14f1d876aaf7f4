#include "dpdk/shared_wire.hpp"

#include <fmt/format.h>
#include <rte_mbuf.h>

#include <cstring>
#include <span>

namespace weftio::dpdk {

using outcome = wires::member::outcome;

shared_wire::shared_wire(std::string_view spec, const std::string& name, const wires::loss& lost)
    : member_(fmt::format("port {}", spec), name), loss_(lost)
{}

shared_wire::~shared_wire()
{
    rte_pktmbuf_free_bulk(spares_.data(), spare_);
}

outcome shared_wire::send(const rte_mbuf& frame) noexcept
{
    if (frame.nb_segs == 1)
        return member_.send({rte_pktmbuf_mtod(&frame, const std::uint8_t*), frame.data_len});
    std::array<std::uint8_t, wires::most_frame_bytes> joined; // a longer frame is read as none, and dropped
    const void* const whole = rte_pktmbuf_read(&frame, 0, frame.pkt_len <= joined.size() ? frame.pkt_len : 0, &joined);
    return member_.send({static_cast<const std::uint8_t*>(whole), whole == &joined ? frame.pkt_len : 0});
}

std::uint16_t shared_wire::give(rte_mbuf** frames, std::uint16_t count) noexcept
{
    std::uint16_t taken = 0;
    while (taken != count) {
        if (loss_.takes_next())
            lost_.add(1);
        else if (send(*frames[taken]) == outcome::full)
            break;
        ++taken;
    }
    member_.publish();
    rte_pktmbuf_free_bulk(frames, taken);
    return taken;
}

std::uint16_t shared_wire::lose_some(rte_mbuf** frames, std::uint16_t count) noexcept
{
    std::uint16_t kept = 0;
    for (rte_mbuf* const frame : std::span(frames, count)) {
        if (loss_.takes_next()) {
            lost_.add(1);
            rte_pktmbuf_free(frame);
        } else {
            frames[kept++] = frame;
        }
    }
    return kept;
}

bool shared_wire::has_spare() noexcept
{
    if (spare_ == 0 && rte_pktmbuf_alloc_bulk(pool_, spares_.data(), mbufs_at_once) == 0)
        spare_ = mbufs_at_once;
    return spare_ != 0;
}

std::uint16_t shared_wire::take(rte_mbuf** frames, std::uint16_t most) noexcept
{
    std::uint16_t taken = 0;
    while (taken != most) {
        const std::span<const std::uint8_t> frame = member_.front();
        if (frame.empty() || !has_spare())
            break;
        rte_mbuf& mbuf = *spares_[spare_ - 1u];
        if (frame.size() <= rte_pktmbuf_tailroom(&mbuf)) {
            std::memcpy(rte_pktmbuf_mtod(&mbuf, std::uint8_t*), frame.data(), frame.size());
            mbuf.data_len = static_cast<std::uint16_t>(frame.size());
            mbuf.pkt_len = mbuf.data_len;
            frames[taken++] = spares_[--spare_];
        } else {
            too_long_.add(1);
        }
        member_.pop();
    }
    member_.release();
    return taken;
}

} // namespace weftio::dpdk
