// Verifies and computes checksums in software, for drivers that do not.
#pragma once

#include <cstdint>
#include <span>

#include "net/packet_headers.hpp"

namespace weftio::net {

/// The flags of a completion, WEFTIO_CQE_L3_OK and WEFTIO_CQE_L4_OK. False means "not known to be good", not "bad".
struct checksum_verdict {
    bool l3_good = false; ///< IPv4: header checksum and length are right; IPv6: length is
    bool l4_good = false; ///< UDP or TCP: right over the whole datagram, or left unfinished by Linux for a NIC
};

/// Verifies the checksums of the IPv4 header and of the UDP or TCP datagram. Any thread; never blocks.
///
/// Never good, because not verified: fragments, a datagram that is longer than the frame, UDP over IPv4 sent without a
/// checksum, and IPv6 with segments left in a routing header (the sum covers a destination that is not in the fixed
/// header).
///
/// @param frame    the whole frame in one piece; copy a frame of several segments into a slot first
/// @param headers  result of parse() for these bytes
checksum_verdict verify_checksums(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept;

/// The checksum for which an IP host drops a UDP datagram (RFC 1122, 3.2.1.2 and 4.1.3.4). A time to live of 0 is no
/// reason to (RFC 1122, 3.2.1.7; RFC 8200, section 3).
enum class wrong_checksum : std::uint8_t { none, ip, udp };

/// Sums the IPv4 header, and the datagram only when its checksum is not 0, which says that it has none. Any thread;
/// never blocks. @pre parse() has found UDP, no fragment, and the datagram is complete in the frame
wrong_checksum wrong_checksum_of(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept;

/// Computes the IPv4 header checksum (`l3`) and the UDP or TCP checksum (`l4`) of a frame to be sent, in place. Any
/// thread; never blocks.
///
/// L3 needs a complete IPv4 header, whatever its total length field says. Unchanged are: checksums of headers that the
/// frame does not have, or has behind more than `max_vlan_tags` tags; the L4 checksum of a fragment, of an IP packet or
/// a UDP datagram with an impossible length field, and of IPv6 with segments left in a routing header.
void fill_checksums(std::span<std::uint8_t> frame, bool l3, bool l4) noexcept;

} // namespace weftio::net
