#include "net/icrc.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "net/crc32_constants.hpp"

namespace weftio::net {
namespace {

/// The register behind eight bytes of ones, which stand for the local route header that RoCEv2 has no more.
constexpr std::uint32_t behind_route_header = 0xdebb20e3;

/// Bits of a byte of the packet that count as ones.
struct masked_byte {
    std::size_t at;
    std::uint8_t mask = 0xff;
};

/// Of IP and UDP, and of the BTH behind them, which is last.
constexpr std::array in_ipv4{
    masked_byte{1},                               // type of service
    masked_byte{8},                               // time to live
    masked_byte{10},         masked_byte{11},     // checksum
    masked_byte{20 + 6},     masked_byte{20 + 7}, // checksum of UDP
    masked_byte{20 + 8 + 4},                      // FECN, BECN, reserved
};
constexpr std::array in_ipv6{
    masked_byte{0, 0x0f},    masked_byte{1},      masked_byte{2}, masked_byte{3}, // traffic class, flow label
    masked_byte{7},                                                               // hop limit
    masked_byte{40 + 6},     masked_byte{40 + 7},                                 // checksum of UDP
    masked_byte{40 + 8 + 4},                                                      // FECN, BECN, reserved
};

/// [n][value]: what the register must begin with, added, so that byte n of these, with that value, counts as masked.
///
/// The CRC is linear: a change of bit i of byte k has the effect of x^(31 - i - 8k), added to the register at the
/// begin. So the bytes are summed up as they are, without a copy in which they are masked.
template <std::size_t count>
constexpr auto corrections(const std::array<masked_byte, count>& masked) noexcept
{
    std::array<std::array<std::uint32_t, 256>, count> tables{};
    for (std::size_t n = 0; n < count; ++n) {
        for (int bit = 0; bit < 8; ++bit) {
            const std::uint32_t effect = crc32::x_to(31 - bit - 8 * static_cast<int>(masked[n].at));
            for (unsigned value = 0; value < 256; ++value) {
                if ((~value & masked[n].mask & 1u << bit) != 0)
                    tables[n][value] ^= effect;
            }
        }
    }
    return tables;
}

constexpr std::array in_bth{masked_byte{4}};

constexpr auto ipv4_corrections = corrections(in_ipv4);
constexpr auto ipv6_corrections = corrections(in_ipv6);
constexpr auto bth_corrections = corrections(in_bth);

/// What is added to the register so that the first `used` of the bytes count as masked.
template <std::size_t used, std::size_t count>
std::uint32_t correction(const std::uint8_t* packet, const std::array<masked_byte, count>& masked,
                         const std::array<std::array<std::uint32_t, 256>, count>& tables) noexcept
{
    std::uint32_t raw = 0;
#pragma GCC unroll 8
    for (std::size_t n = 0; n < used; ++n)
        raw ^= tables[n][packet[masked[n].at]];
    return raw;
}

bool begins_with_ipv4(std::span<const std::uint8_t> headers) noexcept
{
    return headers[0] >> 4 == 4;
}

} // namespace

icrc::icrc(std::span<const std::uint8_t> headers) noexcept
    : raw_(behind_route_header ^
           (begins_with_ipv4(headers) ? correction<in_ipv4.size()>(headers.data(), in_ipv4, ipv4_corrections)
                                      : correction<in_ipv6.size()>(headers.data(), in_ipv6, ipv6_corrections)))
{
    add(headers);
}

icrc::icrc(std::uint32_t front, std::span<const std::uint8_t> from_bth) noexcept
    : raw_(front ^ correction<in_bth.size()>(from_bth.data(), in_bth, bth_corrections))
{
    add(from_bth);
}

std::uint32_t icrc::front_of(std::span<const std::uint8_t> ip_and_udp) noexcept
{
    const std::uint32_t raw =
        behind_route_header ^
        (begins_with_ipv4(ip_and_udp) ? correction<in_ipv4.size() - 1>(ip_and_udp.data(), in_ipv4, ipv4_corrections)
                                      : correction<in_ipv6.size() - 1>(ip_and_udp.data(), in_ipv6, ipv6_corrections));
    return crc32_update(raw, ip_and_udp);
}

std::size_t icrc::finish(std::uint8_t* to, std::size_t pad_bytes) noexcept
{
    constexpr std::array<std::uint8_t, 3> zeros{};
    copy(to, std::span(zeros).first(pad_bytes));
    store_icrc(to + pad_bytes, value());
    return pad_bytes + icrc_bytes;
}

std::uint32_t icrc_of(std::span<const std::uint8_t> packet) noexcept
{
    return icrc(packet).value();
}

std::uint32_t load_icrc(const std::uint8_t* from) noexcept
{
    return from[0] | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16 | std::uint32_t{from[3]} << 24;
}

void store_icrc(std::uint8_t* to, std::uint32_t value) noexcept
{
    if constexpr (std::endian::native == std::endian::big)
        value = __builtin_bswap32(value);
    std::memcpy(to, &value, sizeof value);
}

} // namespace weftio::net
