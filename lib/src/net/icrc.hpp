// The invariant CRC of RoCEv2: what guards a packet on its way, but for the fields that routers change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "net/crc32.hpp"

namespace weftio::net {

inline constexpr std::size_t icrc_bytes = 4; ///< behind payload and pad, little-endian

/// Bytes of the IP, UDP and base transport headers, in which fields are masked.
inline constexpr std::size_t masked_ipv4_bytes = 20 + 8 + 12;
inline constexpr std::size_t masked_ipv6_bytes = 40 + 8 + 12;

/// The ICRC of a packet, summed up piece by piece. Any thread, one at a time; never blocks.
///
/// Not covered are Ethernet and VLAN tags; type of service, time to live and checksum of IPv4; traffic class, flow
/// label and hop limit of IPv6; the checksum of UDP; FECN, BECN and the reserved bits beside them.
class icrc {
 public:
    /// Begins with the headers: IP, UDP and BTH, and as much of what follows as is there in one piece.
    ///
    /// @pre an IPv4 header without options and `masked_ipv4_bytes`, or an IPv6 header without extensions and
    ///      `masked_ipv6_bytes` at least, as parse_roce() and build_roce() leave them
    explicit icrc(std::span<const std::uint8_t> headers) noexcept;

    /// Begins behind IP and UDP. @param front  front_of() them;  @param from_bth  the BTH, and what follows in one
    /// piece
    icrc(std::uint32_t front, std::span<const std::uint8_t> from_bth) noexcept;

    /// The register behind an IP header and that of UDP: packets with the same headers begin with the same.
    static std::uint32_t front_of(std::span<const std::uint8_t> ip_and_udp) noexcept;

    /// The bytes that follow on the wire: extended headers, payload, pad.
    void add(std::span<const std::uint8_t> bytes) noexcept { raw_ = crc32_update(raw_, bytes); }

    /// The same, and copies them to `to`, which has room and does not overlap with them: one pass instead of two.
    void copy(std::uint8_t* to, std::span<const std::uint8_t> bytes) noexcept { raw_ = copy_and_sum(raw_, to, bytes); }

    /// The ICRC of all bytes so far.
    std::uint32_t value() const noexcept { return ~raw_; }

    /// Ends a packet: writes `pad_bytes` (0 to 3) zeros and the ICRC to `to`, and returns how many bytes that were.
    std::size_t finish(std::uint8_t* to, std::size_t pad_bytes) noexcept;

 private:
    std::uint32_t raw_;
};

/// The ICRC of a packet in one piece, from its IP header to its pad. @pre as that of icrc::icrc()
std::uint32_t icrc_of(std::span<const std::uint8_t> packet) noexcept;

std::uint32_t load_icrc(const std::uint8_t* from) noexcept;
void store_icrc(std::uint8_t* to, std::uint32_t value) noexcept;

} // namespace weftio::net
