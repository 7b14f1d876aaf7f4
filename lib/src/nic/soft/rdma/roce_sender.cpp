#include "nic/soft/rdma/roce_sender.hpp"

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <numeric>

#include "core/clock.hpp"
#include "core/guarded.hpp"
#include "net/icrc.hpp"

namespace weftio::nic::soft {

namespace {

/// A payload up to this length is copied first, and summed together with the headers in one call. A longer one is
/// copied and summed in one pass.
constexpr std::size_t short_bytes = 256;

/// A packet between its headers and its ICRC.
struct body {
    std::uint8_t* at;
    std::span<const roce::piece> payload;
    std::size_t bytes; ///< of the payload
    std::size_t pad() const noexcept { return -bytes & 3; }
};

/// Copies the payload and appends the pad. Returns the position of the ICRC.
std::uint8_t* write_plain(core::touched& there, const body& body) noexcept
{
    std::uint8_t* to = body.at;
    for (const roce::piece piece : body.payload) {
        there.only(piece.data(), piece.size());
        to = std::copy(piece.begin(), piece.end(), to);
    }
    return std::fill_n(to, body.pad(), std::uint8_t{0});
}

/// Writes the packet from the payload to the ICRC. @param headers  from the BTH on
void write_summed(core::touched& there, const net::roce_front& front, std::span<const std::uint8_t> headers,
                  const body& body) noexcept
{
    if (body.bytes <= short_bytes) {
        std::uint8_t* const end = write_plain(there, body);
        return net::store_icrc(end, front.begin_icrc({headers.data(), end}).value());
    }
    net::icrc sum = front.begin_icrc(headers);
    std::uint8_t* to = body.at;
    for (const roce::piece piece : body.payload) {
        there.only(piece.data(), piece.size());
        sum.copy(to, piece);
        to += piece.size();
    }
    sum.finish(to, body.pad());
}

enum class built : std::uint8_t {
    whole,
    not_at_all, ///< the headers cannot be built, or the mbuf is too small
    payload_gone
};

/// Writes a packet to an empty mbuf.
/// @param with_icrc  false: the packet does not leave the port; its ICRC is 0 and never checked
built build(rte_mbuf& mbuf, net::roce_front& front, bool with_icrc, const roce::roce_headers& headers,
            std::span<const roce::piece> payload) noexcept
{
    auto* const frame = rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
    const std::size_t bytes = std::accumulate(payload.begin(), payload.end(), std::size_t{0},
                                              [](std::size_t sum, roce::piece piece) { return sum + piece.size(); });
    const std::size_t room = rte_pktmbuf_tailroom(&mbuf);
    if (net::most_roce_headers_bytes + bytes + 3 + net::icrc_bytes > room)
        return built::not_at_all;
    const std::size_t begin = front.build({frame, room}, headers, bytes);
    if (begin == 0)
        return built::not_at_all;
    const body body{frame + begin, payload, bytes};
    const bool whole = core::guarded([&](core::touched& there) {
        if (with_icrc)
            write_summed(there, front, {frame + front.bth_offset(), frame + begin}, body);
        else
            net::store_icrc(write_plain(there, body), 0);
    });
    if (!whole)
        return built::payload_gone;
    const std::size_t end = begin + bytes + body.pad() + net::icrc_bytes;
    mbuf.data_len = static_cast<std::uint16_t>(end);
    mbuf.pkt_len = static_cast<std::uint32_t>(end);
    return built::whole;
}

} // namespace

roce_sender::roce_sender(const dpdk::port_queue& port_queue) : port_queue_(port_queue)
{
    for (std::vector<rte_mbuf*>& each : own_)
        each.reserve(most_own);
}

roce_sender::~roce_sender()
{
    rte_pktmbuf_free_bulk(staged_.data(), count_);
    rte_pktmbuf_free_bulk(own_[0].data(), static_cast<unsigned>(own_[0].size()));
    rte_pktmbuf_free_bulk(spares_.data(), spare_);
    for (const held_packet& each : held_)
        rte_pktmbuf_free(each.mbuf);
}

/// Leaves a quarter of the pool to Ethernet queues. Prefetches the spare mbufs, which will be written soon.
void roce_sender::take_mbufs() noexcept
{
    if (rte_mempool_avail_count(port_queue_.copies) <= port_queue_.copies->size / 4 ||
        rte_pktmbuf_alloc_bulk(port_queue_.copies, spares_.data(), mbufs_at_once) != 0)
        return;
    spare_ = mbufs_at_once;
    for (rte_mbuf* const spare : spares_)
        rte_prefetch0(rte_pktmbuf_mtod(spare, void*));
}

bool roce_sender::has_room(bool to_own) noexcept
{
    if (spare_ == 0)
        take_mbufs();
    const bool full = to_own ? own_[0].size() == most_own : count_ == burst;
    ran_out_ = ran_out_ || full || spare_ == 0;
    return !full && spare_ != 0;
}

bool roce_sender::put(net::roce_front& front, bool to_own, const roce::roce_headers& headers,
                      std::span<const roce::piece> payload)
{
    payload_gone_ = false;
    if (special_) [[unlikely]]
        if (const auto taken = put_specially(front, to_own, headers, payload); taken)
            return *taken;
    if (!to_own && count_ == burst)
        flush();
    if (!has_room(to_own))
        return false;
    const built result = build(*spares_[spare_ - 1u], front, !to_own || port_queue_.dump, headers, payload);
    payload_gone_ = result == built::payload_gone;
    if (result != built::whole)
        return false;
    stage(*spares_[--spare_], to_own);
    return true;
}

[[gnu::cold]] std::optional<bool> roce_sender::put_specially(net::roce_front& front, bool to_own,
                                                             const roce::roce_headers& headers,
                                                             std::span<const roce::piece> payload)
{
    if (port_lost_)
        return true; // same as a loss on the wire
    if (std::exchange(refuses_next_, false)) {
        note_special();
        return false;
    }
    if (holder_ && holder_front_ == &front)
        return put_held(front, to_own, headers, payload);
    return std::nullopt;
}

bool roce_sender::put(std::span<const std::uint8_t> frame)
{
    if (port_lost_)
        return true;
    if (count_ == burst)
        flush();
    if (!has_room(false))
        return false;
    rte_mbuf* const mbuf = spares_[spare_ - 1u];
    std::copy(frame.begin(), frame.end(), rte_pktmbuf_mtod(mbuf, std::uint8_t*));
    mbuf->data_len = static_cast<std::uint16_t>(frame.size());
    mbuf->pkt_len = mbuf->data_len;
    stage(*spares_[--spare_], false);
    return true;
}

/// Queues a packet. @pre there is room
void roce_sender::stage(rte_mbuf& mbuf, bool to_own)
{
    sent.add(1);
    sent_bytes.add(mbuf.pkt_len);
    if (trace_)
        trace_->note({rte_pktmbuf_mtod(&mbuf, const std::uint8_t*), mbuf.data_len}, mbuf.pkt_len, core::utc_stamp_ns(),
                     net::frame_direction::sent);
    if (to_own)
        own_[0].push_back(&mbuf);
    else
        staged_[count_++] = &mbuf;
}

void roce_sender::flush() noexcept
{
    if (count_ == 0)
        return;
    const std::uint16_t taken = port_queue_.give(staged_.data(), count_);
    std::copy(staged_.begin() + taken, staged_.begin() + count_, staged_.begin());
    count_ = static_cast<std::uint16_t>(count_ - taken);
}

std::span<rte_mbuf* const> roce_sender::take_own() noexcept
{
    own_[1].clear();
    own_[0].swap(own_[1]);
    std::vector<rte_mbuf*>& all = own_[1];
    const std::size_t again = std::exchange(put_back_, 0);
    if (all.size() != again && port_queue_.is_watched())
        all.resize(again + port_queue_.give_back(&all[again], static_cast<std::uint16_t>(all.size() - again)));
    return all;
}

void roce_sender::lose_port() noexcept
{
    port_lost_ = special_ = true;
    rte_pktmbuf_free_bulk(staged_.data(), count_);
    rte_pktmbuf_free_bulk(spares_.data(), spare_);
    count_ = spare_ = 0;
}

} // namespace weftio::nic::soft
