// The checksums of a received frame, for drivers that do not verify them.
#pragma once

#include <cstdint>
#include <span>

#include "net/packet_headers.hpp"

namespace weftio::nic {

/// What goes into a completion: WEFTIO_CQE_L3_OK and WEFTIO_CQE_L4_OK. False says "not found good", not "bad".
struct checksum_verdict {
    bool l3_good = false; ///< IPv4: header checksum and length; IPv6, which has none: length
    bool l4_good =
        false; ///< UDP or TCP, over the whole datagram, or left to the sender's NIC by Linux and never finished
};

/// Adds up the IPv4 header and the UDP or TCP datagram. Any thread; never blocks.
///
/// Not verified, so never good: fragments, a datagram that is longer than the frame, UDP over IPv4 sent without a
/// checksum, and IPv6 with segments left in a routing header (the sum covers a destination that is not in the fixed
/// header).
///
/// @param frame    the whole frame in one piece: for several segments call this after the copy into a slot
/// @param headers  what parse() made of these bytes
checksum_verdict verify_checksums(std::span<const std::uint8_t> frame, const packet_headers& headers) noexcept;

/// Computes the IPv4 header checksum (`l3`) and the UDP or TCP one (`l4`) of a frame that is to be sent, in place. Any
/// thread; never blocks.
///
/// L3 takes an IPv4 header that is whole, whatever total length it gives. Left as they are: what a frame does not have,
/// or has behind more than `max_vlan_tags` tags; L4 of a fragment, of an IP packet or a UDP datagram that does not end
/// where its length says, and of IPv6 with segments left in a routing header.
void fill_checksums(std::span<std::uint8_t> frame, bool l3, bool l4) noexcept;

} // namespace weftio::nic
