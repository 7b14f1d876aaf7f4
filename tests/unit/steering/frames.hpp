// Frames for tests, built from the inside out: ethernet({}, 0x0800, ipv4({}, udp(1, 2))). Lengths and checksums are
// filled in correctly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace frames {

using bytes = std::vector<std::uint8_t>;
using address4 = std::array<std::uint8_t, 4>;
using address6 = std::array<std::uint8_t, 16>;

inline void put(bytes& to, std::uint16_t value)
{
    to.push_back(static_cast<std::uint8_t>(value >> 8));
    to.push_back(static_cast<std::uint8_t>(value));
}
inline void set(bytes& in, std::size_t at, std::uint16_t value)
{
    in[at] = static_cast<std::uint8_t>(value >> 8);
    in[at + 1] = static_cast<std::uint8_t>(value);
}
inline void append(bytes& to, std::span<const std::uint8_t> more)
{
    to.insert(to.end(), more.begin(), more.end());
}

/// The checksum of RFC 1071, word by word; intentionally not the library's code.
inline std::uint16_t checksum(std::span<const std::uint8_t> data)
{
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < data.size(); ++at)
        sum += at % 2 == 0 ? static_cast<std::uint32_t>(data[at]) << 8 : data[at];
    while (sum > 0xffff)
        sum = (sum & 0xffff) + (sum >> 16);
    return static_cast<std::uint16_t>(~sum);
}

inline bytes udp(std::uint16_t source, std::uint16_t destination, std::size_t payload_bytes = 11)
{
    bytes datagram;
    put(datagram, source);
    put(datagram, destination);
    put(datagram, static_cast<std::uint16_t>(8 + payload_bytes));
    put(datagram, 0);
    datagram.resize(8 + payload_bytes, 0xa5);
    return datagram;
}

inline bytes tcp(std::uint16_t source, std::uint16_t destination, std::uint8_t flags = 0x10,
                 std::size_t option_bytes = 0)
{
    bytes segment;
    put(segment, source);
    put(segment, destination);
    segment.resize(12);
    segment.push_back(static_cast<std::uint8_t>((20 + option_bytes) / 4 << 4));
    segment.push_back(flags);
    segment.resize(20 + option_bytes, 1);
    set(segment, 16, 0);
    append(segment, std::array<std::uint8_t, 5>{'h', 'e', 'l', 'l', 'o'});
    return segment;
}

/// Fills in the checksum of a UDP datagram or TCP segment from `source` to `destination`.
inline void finish_l4(bytes& datagram, std::uint8_t protocol, std::span<const std::uint8_t> source,
                      std::span<const std::uint8_t> destination)
{
    const std::size_t at = protocol == 17 ? 6 : 16;
    bytes summed(source.begin(), source.end());
    append(summed, destination);
    put(summed, protocol);
    put(summed, static_cast<std::uint16_t>(datagram.size()));
    append(summed, datagram);
    const std::uint16_t sum = checksum(summed);
    set(datagram, at, sum == 0 ? 0xffff : sum);
}

struct ipv4_fields {
    std::uint8_t protocol = 17;
    address4 source = {10, 1, 2, 3};
    address4 destination = {192, 168, 7, 9};
    std::uint16_t fragment = 0; ///< flags and offset
    std::size_t option_bytes = 0;
};

inline bytes ipv4(const ipv4_fields& fields, bytes payload)
{
    if ((fields.protocol == 17 || fields.protocol == 6) && fields.fragment == 0)
        finish_l4(payload, fields.protocol, fields.source, fields.destination);
    const std::size_t header_bytes = 20 + fields.option_bytes;
    bytes packet = {static_cast<std::uint8_t>(0x40 | header_bytes / 4), 0};
    put(packet, static_cast<std::uint16_t>(header_bytes + payload.size()));
    put(packet, 0x1234);
    put(packet, fields.fragment);
    append(packet, std::array<std::uint8_t, 4>{64, fields.protocol, 0, 0});
    append(packet, fields.source);
    append(packet, fields.destination);
    packet.resize(header_bytes, 1); // no-operation options
    set(packet, 10, checksum(packet));
    append(packet, payload);
    return packet;
}

/// An extension header: its number, and its bytes without the first, which is the number of the next header.
struct extension {
    std::uint8_t number;
    bytes rest;
};

struct ipv6_fields {
    std::uint8_t protocol = 17;
    address6 source = {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    address6 destination = {0x20, 1, 0xd, 0xb8, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2};
    std::vector<extension> extensions{};
};

inline bytes ipv6(const ipv6_fields& fields, bytes payload)
{
    if (fields.protocol == 17 || fields.protocol == 6)
        finish_l4(payload, fields.protocol, fields.source, fields.destination);
    bytes chain;
    for (std::size_t i = 0; i < fields.extensions.size(); ++i) {
        chain.push_back(i + 1 < fields.extensions.size() ? fields.extensions[i + 1].number : fields.protocol);
        append(chain, fields.extensions[i].rest);
    }
    bytes packet = {0x60, 0, 0, 0};
    put(packet, static_cast<std::uint16_t>(chain.size() + payload.size()));
    packet.push_back(fields.extensions.empty() ? fields.protocol : fields.extensions[0].number);
    packet.push_back(64);
    append(packet, fields.source);
    append(packet, fields.destination);
    append(packet, chain);
    append(packet, payload);
    return packet;
}

struct tag {
    std::uint16_t type;
    std::uint16_t tci;
};

inline bytes ethernet(std::initializer_list<tag> tags, std::uint16_t type, const bytes& payload)
{
    bytes frame = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
    for (const tag& tag : tags) {
        put(frame, tag.type);
        put(frame, tag.tci);
    }
    put(frame, type);
    append(frame, payload);
    return frame;
}

inline bytes udp4(std::uint16_t source = 1000, std::uint16_t destination = 2000)
{
    return ethernet({}, 0x0800, ipv4({}, udp(source, destination)));
}
inline bytes tcp4(std::uint16_t source = 1000, std::uint16_t destination = 2000, std::uint8_t flags = 0x10)
{
    return ethernet({}, 0x0800, ipv4({.protocol = 6}, tcp(source, destination, flags)));
}
inline bytes udp6(std::uint16_t source = 1000, std::uint16_t destination = 2000)
{
    return ethernet({}, 0x86dd, ipv6({}, udp(source, destination)));
}

inline extension hop_by_hop()
{
    return {0, {0, 5, 2, 0, 0, 1, 0}};
}
inline extension destination_options(std::uint8_t units = 0)
{
    bytes rest(units * 8u + 7u, 0);
    rest[0] = units;
    rest[1] = 1;
    return {60, rest};
}
/// A segment routing header (RFC 8754) of one segment.
inline extension routing(std::uint8_t segments_left)
{
    bytes rest = {2, 4, segments_left, 0, 0, 0, 0};
    rest.resize(23, 0xfd);
    return {43, rest};
}
inline extension authentication()
{
    return {51, {4, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
}
inline extension mobility()
{
    return {135, {0, 0, 0, 0, 0, 0, 0}};
}
/// `offset_and_more` as in the header: offset << 3 | more fragments.
inline extension fragment(std::uint16_t offset_and_more)
{
    return {
        44,
        {0, static_cast<std::uint8_t>(offset_and_more >> 8), static_cast<std::uint8_t>(offset_and_more), 0, 0, 0, 9}};
}

/// One frame for every combination of headers that the parser knows, without fragments.
inline std::vector<bytes> whole_frames()
{
    return {
        udp4(),
        tcp4(),
        udp6(),
        ethernet({{0x8100, 0x2005}}, 0x0800, ipv4({.protocol = 6, .option_bytes = 12}, tcp(1, 2, 2, 20))),
        ethernet({{0x88a8, 7}, {0x8100, 8}}, 0x86dd, ipv6({.protocol = 6}, tcp(1, 2, 2, 12))),
        ethernet({{0x9100, 1}, {0x9100, 2}, {0x8100, 3}, {0x8100, 4}}, 0x0800, ipv4({}, udp(5, 6))),
        ethernet({}, 0x86dd,
                 ipv6({.extensions = {hop_by_hop(), destination_options(3), routing(0), authentication(), fragment(0),
                                      mobility()}},
                      udp(7, 8))),
    };
}

} // namespace frames
