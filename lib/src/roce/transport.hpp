// What requester and responder share: connection parameters, the packet sink, payloads.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "net/roce_connection.hpp"
#include "net/roce_headers.hpp"
#include "net/roce_rules.hpp"
#include "weftio/refusal.hpp"

/// The RDMA transport as pure state machines: no threads, no clock, no DPDK, and no allocation once the pool of the
/// workspace is warm. The owner passes in packets whose ICRC is right, entries, memory and the time, and sends the
/// packets that they make.
namespace weftio::roce {

using net::opcodes_of;
using net::roce_connection;
using net::roce_headers;
using net::roce_opcode;
using net::roce_operation;
using net::roce_packet;
using net::roce_service;
using net::roce_shape;

/// Payload bytes, not copied.
using piece = std::span<const std::uint8_t>;

/// The payload of one packet: an entry has at most 63 segments, its control segment included.
struct pieces {
    static constexpr unsigned most = 64;

    std::array<piece, most> list;
    unsigned count = 0;

    /// Returns false when the list is full.
    bool add(piece more) noexcept
    {
        if (count == most)
            return false;
        list[count++] = more;
        return true;
    }
    std::span<const piece> all() const noexcept { return {list.data(), count}; }
};

/// What a queue pair may send in one turn.
struct allowance {
    /// What a packet costs in addition to its payload, in bytes.
    static constexpr std::uint32_t of_a_packet = 256;

    allowance(unsigned most_packets, std::uint32_t most_bytes = UINT32_MAX) noexcept
        : packets(most_packets), bytes(most_bytes)
    {}
    bool empty() const noexcept { return packets == 0 || bytes == 0; }
    void spend(std::uint32_t payload_bytes, std::uint32_t of_packets = 1) noexcept
    {
        packets -= std::min(packets, of_packets);
        bytes -= std::min(bytes, payload_bytes + of_a_packet);
    }

    unsigned packets;
    std::uint32_t bytes; ///< the last packet may exceed this
};

/// Where packets leave. Adds what belongs to the path, the pad and the ICRC.
class packet_sink {
 public:
    /// Takes a packet. The payload may change as soon as this returns. Never blocks.
    /// @return false: nothing was taken. Either there was no room, and a later turn sends the same packet again, or
    ///   payload_gone()
    virtual bool send(const roce_headers& headers, std::span<const piece> payload) = 0;
    /// Whether the last send() has taken nothing because memory of the payload has gone.
    virtual bool payload_gone() const noexcept { return false; }
    /// Whether the peer has yet to read packets that send() took, so that their answer is late and nothing is lost.
    /// @param[in,out] sent  which packets; 0: all until now, and becomes what names them in the next call
    virtual bool is_under_way(std::uint64_t& sent) noexcept
    {
        (void)sent;
        return false; // most ways cannot tell
    }

 protected:
    ~packet_sink() = default;
};

/// Whether the packet belongs to this partition. The upper bit of the key is ignored: it is the membership of the
/// sender.
inline bool same_partition(const roce_connection& peer, const roce_headers& headers) noexcept
{
    return ((peer.partition_key ^ headers.bth.partition_key) & 0x7fff) == 0;
}

/// The base transport header of a packet to the peer.
inline net::roce_bth bth_to(const roce_connection& peer, roce_opcode opcode, std::uint32_t psn) noexcept
{
    return {.opcode = opcode,
            .partition_key = peer.partition_key,
            .destination_qp = peer.peer_queue & 0xffffff,
            .psn = psn & net::psn_mask};
}

} // namespace weftio::roce
