// Reads and builds RoCEv2 packets: Ethernet, IP, UDP, base transport header (BTH), extended headers, payload, pad,
// ICRC.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "net/icrc.hpp"
#include "net/packet_headers.hpp"
#include "net/roce_opcodes.hpp"

namespace weftio::net {

inline constexpr std::uint16_t roce_port = 4791; ///< UDP destination port
inline constexpr unsigned most_roce_tags = 2;

/// Ethernet, two tags, IPv6, UDP, BTH, AtomicETH: the most that build_roce() writes.
inline constexpr std::size_t most_roce_headers_bytes = 14 + 2 * 4 + 40 + 8 + 12 + 28;

/// Why a frame is not a packet for a queue pair.
enum class roce_refusal : std::uint8_t {
    none,
    not_roce,            ///< not a complete UDP datagram to port 4791
    too_many_tags,       ///< more than most_roce_tags
    ip_options,          ///< of IPv4, or extension headers of IPv6
    fragment,            ///< of an IP packet
    truncated,           ///< the IP packet is longer than the frame
    udp_length,          ///< not that of the IP packet without its header
    too_short,           ///< no room for BTH and ICRC
    misaligned,          ///< the length is not a multiple of four bytes
    unknown_version,     ///< of the BTH: not 0
    unknown_opcode,      ///< reserved or not supported
    no_extended_headers, ///< no room for those that the opcode demands
    wrong_pad,           ///< more than there are bytes
    wrong_payload,       ///< the opcode takes none, or more than 4096 bytes
};

/// Whether the datagram is a packet for a queue pair whose request is invalid (IBTA 9.7.4.1): its BTH can be relied on.
constexpr bool is_invalid_request(roce_refusal why) noexcept
{
    return why >= roce_refusal::unknown_opcode;
}

/// An address of a port: that of IPv6, or ::ffff:a.b.c.d.
using roce_gid = std::array<std::uint8_t, 16>;

/// An address as packet_headers has it.
struct header_address {
    std::array<std::uint8_t, 16> bytes{};
    l3_kind l3 = l3_kind::none;

    bool operator==(const header_address& other) const noexcept { return is(other.l3, other.bytes); }
    /// Two loads: GCC calls memcmp() for a comparison of arrays.
    bool is(l3_kind other_l3, const std::array<std::uint8_t, 16>& other) const noexcept
    {
        std::array<std::uint64_t, 2> mine, theirs;
        std::memcpy(mine.data(), bytes.data(), sizeof mine);
        std::memcpy(theirs.data(), other.data(), sizeof theirs);
        return l3 == other_l3 && ((mine[0] ^ theirs[0]) | (mine[1] ^ theirs[1])) == 0;
    }
};
header_address header_address_of(const roce_gid& address) noexcept;

roce_gid gid_of_ipv4(std::span<const std::uint8_t, 4> address) noexcept;
/// Whether an address is ::ffff:a.b.c.d.
bool is_ipv4(const roce_gid& address) noexcept;
/// As inet_ntop() writes it: "10.0.0.1", "fd00::1".
std::string text_of(const roce_gid& address);

struct vlan_tag {
    std::uint16_t type = 0x8100;
    std::uint16_t tci = 0;

    bool operator==(const vlan_tag&) const = default;
};

/// The way of a packet: what stands in Ethernet, IP and UDP, but for lengths and checksums.
struct roce_path {
    std::array<std::uint8_t, 6> destination_mac{};
    std::array<std::uint8_t, 6> source_mac{};
    std::array<vlan_tag, most_roce_tags> tags{}; ///< the outermost first
    std::uint8_t tag_count = 0;
    l3_kind l3 = l3_kind::ipv4; ///< ipv4 or ipv6
    roce_gid source{};          ///< of ipv4, the last four bytes count
    roce_gid destination{};
    std::uint32_t flow_label = 0;     ///< 20 bits, ipv6 only
    std::uint16_t identification = 0; ///< ipv4 only
    std::uint16_t source_port = 0;
    std::uint8_t traffic_class = 0; ///< DSCP, and ECN in the lower two bits
    std::uint8_t hop_limit = 64;    ///< or time to live

    bool operator==(const roce_path&) const = default;
};

/// The base transport header.
struct roce_bth {
    roce_opcode opcode = roce_opcode::rc_send_only;
    bool solicited = false;
    bool migrated = false;
    bool ack_request = false;
    bool fecn = false;
    bool becn = false;
    std::uint16_t partition_key = 0xffff;
    std::uint32_t destination_qp = 0; ///< 24 bits
    std::uint32_t psn = 0;            ///< 24 bits

    bool operator==(const roce_bth&) const = default;
};

/// BTH, and the extended headers that its opcode has; what belongs to others is 0 when read and ignored when written.
struct roce_headers {
    roce_bth bth;
    std::uint64_t address = 0;        ///< RETH, AtomicETH
    std::uint32_t remote_key = 0;     ///< RETH, AtomicETH
    std::uint32_t dma_bytes = 0;      ///< RETH: length of the whole message
    std::uint64_t swap_or_add = 0;    ///< AtomicETH
    std::uint64_t compare = 0;        ///< AtomicETH
    std::uint64_t original = 0;       ///< AtomicAckETH: the value before the operation
    std::uint32_t msn = 0;            ///< AETH: 24 bits
    std::uint32_t immediate = 0;      ///< ImmDt, as the number that big-endian bytes make
    std::uint32_t invalidate_key = 0; ///< IETH
    std::uint32_t queue_key = 0;      ///< DETH
    std::uint32_t source_qp = 0;      ///< DETH: 24 bits
    std::uint8_t syndrome = 0;        ///< AETH

    bool operator==(const roce_headers&) const = default;
};

/// A packet that was read. Refers to the bytes of the frame.
struct roce_packet {
    roce_path path; ///< read_path() or parse_roce() without headers sets it
    roce_headers headers;
    std::span<const std::uint8_t> payload;  ///< without pad
    std::span<const std::uint8_t> covered;  ///< by the ICRC: from the IP header to the pad
    std::uint32_t icrc = 0;                 ///< as it stands in the frame
    roce_refusal form = roce_refusal::none; ///< none, or is_invalid_request(): then there is no more than path and BTH

    /// Whether the ICRC is that of the packet: one pass over it.
    bool icrc_good() const noexcept { return icrc_of(covered) == icrc; }
};

/// Reads a frame. Any thread; never blocks; reads nothing beyond the frame, whatever it holds.
///
/// Checked is the form: headers that are complete, lengths that agree, no more payload than 4096 bytes. Left to others
/// are the ICRC (roce_packet::icrc_good()), the checksums of IP and UDP (verify_checksums()), the payload that a path
/// MTU allows (payload_fits()), and all that only a queue pair knows. Reserved bits and bytes of Ethernet behind the
/// ICRC are ignored.
///
/// @param frame    the whole frame in one piece
/// @param headers  result of parse() for these bytes
/// @param packet   undefined when the frame is refused, unless is_invalid_request(): then all of it is set but the
///                 extended headers and the payload, which are 0 and empty
/// @return none, or why the frame is refused. The path of the packet is unchanged.
roce_refusal parse_roce(std::span<const std::uint8_t> frame, const packet_headers& headers,
                        roce_packet& packet) noexcept;

/// The path of a frame that parse_roce() has not refused, or as an invalid request only.
roce_path read_path(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept;

/// Both, of a frame that nobody has looked at yet.
roce_refusal parse_roce(std::span<const std::uint8_t> frame, roce_packet& packet) noexcept;

/// How many bytes build_roce() writes.
std::size_t roce_headers_bytes(const roce_path& path, roce_opcode opcode) noexcept;

/// Writes all headers of a packet: Ethernet to the last extended header. Any thread; never blocks.
///
/// Payload, pad and ICRC come from the caller: an icrc begun with the bytes from icrc_offset(path) on copies the
/// payload behind the headers, and finish() ends the packet. IPv4 has its checksum and "don't fragment"; UDP has no
/// checksum.
///
/// @param to             has room for roce_headers_bytes()
/// @param payload_bytes  without pad, 0 to 4096
/// @return bytes written; 0 when `to` is too small, the opcode is unknown, there is too much payload, or some that the
///         opcode does not take: `to` is then unchanged
std::size_t build_roce(std::span<std::uint8_t> to, const roce_path& path, const roce_headers& headers,
                       std::size_t payload_bytes) noexcept;

/// Where the ICRC of a packet begins: at its IP header.
constexpr std::size_t icrc_offset(const roce_path& path) noexcept
{
    return 14 + std::size_t{path.tag_count} * 4;
}

/// Writes a whole packet, which takes one pass over the payload. @pre `payload` and `to` do not overlap
/// @return its bytes; 0 as build_roce() does, or when `to` has no room for the whole
std::size_t build_whole_roce(std::span<std::uint8_t> to, const roce_path& path, const roce_headers& headers,
                             std::span<const std::uint8_t> payload) noexcept;

} // namespace weftio::net
