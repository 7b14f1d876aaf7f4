#include "nic/soft/rdma/rdma_wire.hpp"

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <algorithm>
#include <numeric>

#include "core/clock.hpp"
#include "core/guarded.hpp"
#include "net/icrc.hpp"

namespace weftio::nic::soft {

namespace {

std::size_t pad_of(std::size_t payload_bytes) noexcept
{
    return -payload_bytes & 3;
}

/// Copies what follows the headers, pad and ICRC included.
void write_summed(core::touched& there, std::uint8_t* to, std::span<const std::uint8_t> headers,
                  std::span<const roce::piece> payload, std::size_t pad_bytes) noexcept
{
    net::icrc sum(headers);
    for (const roce::piece piece : payload) {
        there.only(piece.data(), piece.size());
        sum.copy(to, piece);
        to += piece.size();
    }
    sum.finish(to, pad_bytes);
}

/// The same for a packet that does not leave the port: nobody looks at its ICRC.
void write_plain(core::touched& there, std::uint8_t* to, std::span<const roce::piece> payload,
                 std::size_t pad_bytes) noexcept
{
    for (const roce::piece piece : payload) {
        there.only(piece.data(), piece.size());
        to = std::copy(piece.begin(), piece.end(), to);
    }
    std::fill_n(to, pad_bytes + net::icrc_bytes, std::uint8_t{0});
}

enum class built : std::uint8_t {
    whole,
    not_at_all, ///< the headers cannot be built, or there is no room
    payload_gone
};

/// Writes a packet to an empty mbuf.
built build(rte_mbuf& mbuf, const net::roce_path& path, bool to_own, const roce::roce_headers& headers,
            std::span<const roce::piece> payload) noexcept
{
    auto* const frame = rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
    const std::size_t bytes = std::accumulate(payload.begin(), payload.end(), std::size_t{0},
                                              [](std::size_t sum, roce::piece piece) { return sum + piece.size(); });
    const std::size_t room = rte_pktmbuf_tailroom(&mbuf);
    if (net::most_roce_headers_bytes + bytes + pad_of(bytes) + net::icrc_bytes > room)
        return built::not_at_all;
    const std::size_t begin = net::build_roce({frame, room}, path, headers, bytes);
    if (begin == 0)
        return built::not_at_all;
    const std::size_t covered = net::icrc_offset(path);
    const bool whole = core::guarded([&](core::touched& there) {
        if (to_own)
            write_plain(there, frame + begin, payload, pad_of(bytes));
        else
            write_summed(there, frame + begin, {frame + covered, begin - covered}, payload, pad_of(bytes));
    });
    if (!whole)
        return built::payload_gone;
    const std::size_t end = begin + bytes + pad_of(bytes) + net::icrc_bytes;
    mbuf.data_len = static_cast<std::uint16_t>(end);
    mbuf.pkt_len = static_cast<std::uint32_t>(end);
    return built::whole;
}

} // namespace

rdma_wire::rdma_wire(const dpdk::wire& wire) : wire_(wire)
{
    for (std::vector<rte_mbuf*>& each : own_)
        each.reserve(most_own);
}

rdma_wire::~rdma_wire()
{
    rte_pktmbuf_free_bulk(staged_.data(), count_);
    rte_pktmbuf_free_bulk(own_[0].data(), static_cast<unsigned>(own_[0].size()));
}

/// Leaves Ethernet queues their share of the pool.
bool rdma_wire::may_take_mbufs() const noexcept
{
    return rte_mempool_avail_count(wire_.copies) > wire_.copies->size / 4;
}

bool rdma_wire::has_room(bool to_own) noexcept
{
    if (spare_ == 0 && may_take_mbufs())
        spare_ = burst;
    const bool full = to_own ? own_[0].size() == most_own : count_ == burst;
    ran_out_ = ran_out_ || full || spare_ == 0;
    return !full && spare_ != 0;
}

bool rdma_wire::put(const net::roce_path& path, bool to_own, const roce::roce_headers& headers,
                    std::span<const roce::piece> payload)
{
    payload_gone_ = false;
    if (port_lost_)
        return true; // as if it were lost on the way
    if (!to_own && count_ == burst)
        flush();
    if (!has_room(to_own))
        return false;
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(wire_.copies);
    const built result = mbuf ? build(*mbuf, path, to_own, headers, payload) : built::not_at_all;
    if (result != built::whole) {
        rte_pktmbuf_free(mbuf);
        payload_gone_ = result == built::payload_gone;
        return false;
    }
    own.add(to_own);
    stage(*mbuf, to_own);
    return true;
}

bool rdma_wire::put(std::span<const std::uint8_t> frame)
{
    if (port_lost_)
        return true;
    if (count_ == burst)
        flush();
    rte_mbuf* const mbuf = has_room(false) ? rte_pktmbuf_alloc(wire_.copies) : nullptr;
    if (!mbuf)
        return false;
    std::copy(frame.begin(), frame.end(), rte_pktmbuf_mtod(mbuf, std::uint8_t*));
    mbuf->data_len = static_cast<std::uint16_t>(frame.size());
    mbuf->pkt_len = mbuf->data_len;
    stage(*mbuf, false);
    return true;
}

/// @pre has_room()
void rdma_wire::stage(rte_mbuf& mbuf, bool to_own)
{
    --spare_;
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

void rdma_wire::flush() noexcept
{
    if (count_ == 0)
        return;
    const std::uint16_t taken = wire_.give(staged_.data(), count_);
    std::copy(staged_.begin() + taken, staged_.begin() + count_, staged_.begin());
    count_ = static_cast<std::uint16_t>(count_ - taken);
}

std::span<rte_mbuf* const> rdma_wire::take_own() noexcept
{
    own_[1].clear();
    own_[0].swap(own_[1]);
    return own_[1];
}

void rdma_wire::lose_port() noexcept
{
    port_lost_ = true;
    rte_pktmbuf_free_bulk(staged_.data(), count_);
    count_ = 0;
}

} // namespace weftio::nic::soft
