// What both ends of a RoCEv2 connection share: what they agreed on, how packets leave, how work ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "weftio/refusal.hpp"

/// The transport of RDMA as pure state machines: no threads, no clock, no DPDK, no allocation after creation. The owner
/// gives them packets whose ICRC is right, entries, memory and the time, and takes the packets that they make.
namespace weftio::roce {

using net::roce_headers;
using net::roce_opcode;
using net::roce_operation;
using net::roce_packet;
using net::roce_service;
using net::roce_shape;

/// What both ends agreed on when they connected.
struct connection {
    roce_service service = roce_service::rc; ///< rc or uc
    std::uint32_t peer_queue = 0;            ///< 24 bits
    std::uint32_t path_mtu = 1024;           ///< one that is_path_mtu()
    std::uint16_t partition_key = 0xffff;
};

/// Some bytes of a payload, where they lie.
using piece = std::span<const std::uint8_t>;

/// The payload of one packet: an entry has at most 62 data segments.
struct pieces {
    static constexpr unsigned most = 64;

    std::array<piece, most> list;
    unsigned count = 0;

    /// Returns false when there is no room for one more.
    bool add(piece more) noexcept
    {
        if (count == most)
            return false;
        list[count++] = more;
        return true;
    }
    std::span<const piece> all() const noexcept { return {list.data(), count}; }
};

/// Where packets leave. It adds what belongs to the path, pad and ICRC.
class packet_sink {
 public:
    /// Takes a packet. The bytes of the payload may change as soon as this returns. Never blocks.
    /// @return false: nothing was taken. For want of room: the same packet comes again in a later turn. Or
    ///         payload_gone()
    virtual bool send(const roce_headers& headers, std::span<const piece> payload) = 0;
    /// Whether the last send() has taken nothing because memory of the payload is not there.
    virtual bool payload_gone() const noexcept { return false; }

 protected:
    ~packet_sink() = default;
};

/// Whether a packet is of this partition: the upper bit of the key says what kind of member its sender is.
inline bool same_partition(const connection& peer, const roce_headers& headers) noexcept
{
    return ((peer.partition_key ^ headers.bth.partition_key) & 0x7fff) == 0;
}

/// The base transport header of a packet to the peer.
inline net::roce_bth bth_to(const connection& peer, roce_opcode opcode, std::uint32_t psn) noexcept
{
    return {.opcode = opcode,
            .partition_key = peer.partition_key,
            .destination_qp = peer.peer_queue & 0xffffff,
            .psn = psn & net::psn_mask};
}

} // namespace weftio::roce
