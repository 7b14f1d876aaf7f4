// Arithmetic of the RoCEv2 transport: sequence numbers, syndromes, timers, packets of a message.
#pragma once

#include <cstdint>

#include "net/roce_opcodes.hpp"

namespace weftio::net {

// Packet sequence numbers (PSN): 24 bits, which wrap.

inline constexpr std::uint32_t psn_mask = 0xffffff;

/// The PSN `count` packets behind `psn`; a negative count goes back.
constexpr std::uint32_t psn_add(std::uint32_t psn, std::int64_t count) noexcept
{
    return static_cast<std::uint32_t>(psn + count) & psn_mask;
}

/// How many packets `to` is ahead of `from`, -2^23 .. 2^23 - 1: negative when it is behind.
constexpr std::int32_t psn_distance(std::uint32_t from, std::uint32_t to) noexcept
{
    return static_cast<std::int32_t>((to - from) << 8) >> 8;
}

// Syndromes of an ACK extended header (AETH).

enum class aeth_kind : std::uint8_t { acknowledge, rnr_nak, reserved, nak };

enum class roce_nak : std::uint8_t {
    sequence_error = 0,     ///< a packet is missing; repeat from the PSN of this NAK
    invalid_request = 1,    ///< a length, an opcode or their order is wrong
    remote_access = 2,      ///< key, range or rights
    remote_operational = 3, ///< the responder cannot go on
    invalid_rd_request = 4,
};

inline constexpr std::uint8_t no_credits = 0x1f; ///< the responder does not count credits

/// Kind of a syndrome; `reserved` also when its upper bit is set.
constexpr aeth_kind kind_of(std::uint8_t syndrome) noexcept
{
    return (syndrome & 0x80) != 0 ? aeth_kind::reserved : static_cast<aeth_kind>(syndrome >> 5);
}

/// Credits of an ACK, timer code of an RNR NAK, or code of a NAK, which may be one that roce_nak does not have.
constexpr std::uint8_t value_of(std::uint8_t syndrome) noexcept
{
    return syndrome & 0x1f;
}

constexpr std::uint8_t ack_syndrome(std::uint8_t credits = no_credits) noexcept
{
    return credits & 0x1f;
}
constexpr std::uint8_t rnr_syndrome(std::uint8_t timer_code) noexcept
{
    return static_cast<std::uint8_t>(0x20 | (timer_code & 0x1f));
}
constexpr std::uint8_t nak_syndrome(roce_nak code) noexcept
{
    return static_cast<std::uint8_t>(0x60 | static_cast<std::uint8_t>(code));
}

// Timers.

/// How long a requester waits after an RNR NAK of this timer code (lower 5 bits): 10 us to 655.36 ms.
std::uint64_t rnr_wait_ns(std::uint8_t timer_code) noexcept;

/// How long a requester waits for an ACK: 4.096 us x 2^code (lower 5 bits); 0 for code 0, which means forever.
constexpr std::uint64_t ack_timeout_ns(std::uint8_t code) noexcept
{
    return (code & 0x1f) == 0 ? 0 : std::uint64_t{4096} << (code & 0x1f);
}

// Segmentation.

inline constexpr std::uint32_t smallest_path_mtu = 256;
inline constexpr std::uint32_t largest_path_mtu = 4096;
inline constexpr std::uint32_t largest_message_bytes = 1u << 31;

/// Whether it is one of 256, 512, 1024, 2048, 4096: bytes of payload in a packet.
constexpr bool is_path_mtu(std::uint32_t bytes) noexcept
{
    return bytes >= smallest_path_mtu && bytes <= largest_path_mtu && (bytes & (bytes - 1)) == 0;
}

/// The largest path MTU whose packets, with their longest headers over IPv6, are IP packets of `port_mtu` bytes at
/// most: 1024 of 1500, 4096 of 4180. 0 when not even 256 fits.
std::uint32_t path_mtu_of(std::uint32_t port_mtu) noexcept;

/// How many packets a message has; one without bytes has one. A READ request takes as many PSNs as its answer has
/// packets. @pre is_path_mtu(path_mtu), bytes <= largest_message_bytes
constexpr std::uint32_t packets_of(std::uint32_t bytes, std::uint32_t path_mtu) noexcept
{
    return bytes == 0 ? 1 : (bytes - 1) / path_mtu + 1;
}

/// One packet of a message.
struct roce_segment {
    roce_position position = roce_position::only;
    std::uint32_t offset = 0; ///< of its payload in the message
    std::uint32_t bytes = 0;
};

/// Packet `index` of a message, counted from 0. @pre that of packets_of(), index < packets_of(bytes, path_mtu)
/// @param count  not 1: so many packets from that one on, as if they were one
constexpr roce_segment segment_of(std::uint32_t bytes, std::uint32_t path_mtu, std::uint32_t index,
                                  std::uint32_t count = 1) noexcept
{
    const std::uint32_t offset = index * path_mtu, room = count * path_mtu;
    const bool begins = index == 0, ends = bytes - offset <= room;
    return {.position = begins ? (ends ? roce_position::only : roce_position::first)
                               : (ends ? roce_position::last : roce_position::middle),
            .offset = offset,
            .bytes = ends ? bytes - offset : room};
}

/// Zeros behind a payload, up to a multiple of four bytes.
constexpr std::uint32_t pad_of(std::uint32_t payload_bytes) noexcept
{
    return -payload_bytes & 3;
}

} // namespace weftio::net
