// Packets that wait for copies from memory that the CPU cannot access, or to it.
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/guarded.hpp"
#include "net/icrc.hpp"
#include "nic/soft/rdma/roce_sender.hpp"

namespace weftio::nic::soft {

namespace {

std::uint8_t* bytes_of(rte_mbuf& mbuf) noexcept
{
    return rte_pktmbuf_mtod(&mbuf, std::uint8_t*);
}

} // namespace

/// The packet takes its place behind the others that wait.
bool roce_sender::put_held(net::roce_front& front, bool to_own, const roce::roce_headers& headers,
                           std::span<const roce::piece> payload)
{
    if (spare_ == 0)
        take_mbufs();
    const bool full = spare_ == 0 || held_.size() == most_held;
    ran_out_ = ran_out_ || full;
    if (full)
        return false;
    rte_mbuf& mbuf = *spares_[spare_ - 1u];
    const std::size_t bytes = std::accumulate(payload.begin(), payload.end(), std::size_t{0},
                                              [](std::size_t sum, roce::piece piece) { return sum + piece.size(); });
    const std::size_t room = rte_pktmbuf_tailroom(&mbuf);
    if (net::most_roce_headers_bytes + bytes + 3 + net::icrc_bytes > room)
        return false;
    const std::size_t begin = front.build({bytes_of(mbuf), room}, headers, bytes);
    if (begin == 0)
        return false;
    held_packet made{.mbuf = &mbuf,
                     .front = front,
                     .payload_at = static_cast<std::uint32_t>(begin),
                     .end = static_cast<std::uint32_t>(begin + bytes),
                     .to_own = to_own,
                     .responds = net::shape_of(headers.bth.opcode).operation == net::roce_operation::read_response,
                     .psn = headers.bth.psn,
                     .ticket = holder_->last,
                     .of = holder_,
                     .gaps = {}};
    payload_gone_ = !fill_held(made, payload);
    if (payload_gone_)
        return false;
    --spare_;
    ++holder_->held;
    held_.push_back(std::move(made));
    return true;
}

/// Writes the bytes that are there, and notes those that copies bring. @return false: memory has gone
bool roce_sender::fill_held(held_packet& packet, std::span<const roce::piece> payload) const
{
    std::uint8_t* const frame = bytes_of(*packet.mbuf);
    std::uint32_t at = packet.payload_at;
    for (const roce::piece piece : payload) {
        if (staging_block block = copies_->holder(piece.data()))
            packet.gaps.push_back({at, piece, std::move(block)});
        else if (!core::guarded_copy(frame + at, piece.data(), piece.size()))
            return false;
        at += static_cast<std::uint32_t>(piece.size());
    }
    return true;
}

/// Writes the rest of the frame. @pre its copies are made
void roce_sender::finish(const held_packet& packet) const noexcept
{
    std::uint8_t* const frame = bytes_of(*packet.mbuf);
    for (const gap& each : packet.gaps)
        std::memcpy(frame + each.at, each.bytes.data(), each.bytes.size());
    const std::uint32_t pad = -(packet.end - packet.payload_at) & 3;
    std::uint8_t* const end = std::fill_n(frame + packet.end, pad, std::uint8_t{0});
    const bool with_icrc = !packet.to_own || port_queue_.dump;
    net::store_icrc(end, with_icrc ? packet.front.begin_icrc({frame + packet.front.bth_offset(), end}).value() : 0);
    const auto bytes = static_cast<std::uint16_t>(packet.end + pad + net::icrc_bytes);
    packet.mbuf->data_len = bytes;
    packet.mbuf->pkt_len = bytes;
}

unsigned roce_sender::release_held()
{
    unsigned count = 0;
    for (; !held_.empty() && held_.front().ticket <= copies_->over(); ++count) {
        const held_packet& packet = held_.front();
        if (!packet.to_own && count_ == burst)
            flush();
        if (packet.to_own ? own_[0].size() == most_own : count_ == burst)
            break;
        if (is_lost(packet) || port_lost_) {
            note_unsent(packet);
            rte_pktmbuf_free(packet.mbuf);
        } else {
            finish(packet);
            stage(*packet.mbuf, packet.to_own);
        }
        --packet.of->held;
        held_.pop_front();
    }
    return count;
}

bool roce_sender::is_lost(const held_packet& packet) noexcept
{
    return packet.of->failed.why != refusal::none && packet.ticket >= packet.of->failed.ticket;
}

void roce_sender::note_unsent(const held_packet& packet) noexcept
{
    failed_copy& failed = packet.of->failed;
    if (is_lost(packet) && packet.responds && !failed.has_psn) {
        failed.psn = packet.psn;
        failed.has_psn = true;
    }
}

void roce_sender::note_unsent(copies_of_pair& of) const noexcept
{
    for (const held_packet& each : held_)
        if (each.of.get() == &of)
            note_unsent(each);
}

} // namespace weftio::nic::soft
