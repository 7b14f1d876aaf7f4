#include "net/roce_headers.hpp"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>

#include "net/byte_order.hpp"
#include "net/roce_layout.hpp"

namespace weftio::net {
namespace {

using bytes = std::span<const std::uint8_t>;

/// Whether there is a UDP datagram to the port of RoCE, complete and of one piece.
roce_refusal check_datagram(bytes frame, const packet_headers& headers) noexcept
{
    if (headers.l4 != l4_kind::udp || headers.destination_port != roce_port)
        return headers.fragment ? roce_refusal::fragment : roce_refusal::not_roce;
    if (headers.fragment)
        return roce_refusal::fragment;
    if (headers.l4_offset != headers.l3_offset + ip_bytes_of(headers.l3))
        return roce_refusal::ip_options;
    if (headers.l3_offset > 2 * mac_bytes + 2 + most_roce_tags * tag_bytes)
        return roce_refusal::too_many_tags;
    if (headers.l3_end > frame.size())
        return roce_refusal::truncated;
    const std::size_t length = load_be<std::uint16_t>(&frame[headers.l4_offset + 4u]);
    if (length != headers.l3_end - headers.l4_offset)
        return roce_refusal::udp_length;
    if (length < udp_bytes + bth_bytes + icrc_bytes)
        return roce_refusal::too_short;
    return length % 4 != 0 ? roce_refusal::misaligned : roce_refusal::none;
}

roce_bth read_bth(const std::uint8_t* at) noexcept
{
    const auto marks_and_queue = load_be<std::uint32_t>(at + 4), ask_and_psn = load_be<std::uint32_t>(at + 8);
    return {.opcode = static_cast<roce_opcode>(at[0]),
            .solicited = (at[1] & 0x80) != 0,
            .migrated = (at[1] & 0x40) != 0,
            .ack_request = ask_and_psn >> 31 != 0,
            .fecn = marks_and_queue >> 31 != 0,
            .becn = (marks_and_queue >> 30 & 1) != 0,
            .partition_key = load_be<std::uint16_t>(at + 2),
            .destination_qp = marks_and_queue & 0xffffff,
            .psn = ask_and_psn & 0xffffff};
}

struct field_reader {
    const std::uint8_t* at;

    template <std::size_t count, class Number>
    void operator()(Number& field) noexcept
    {
        field = load_be<Number, count>(at);
        at += count;
    }
};

/// Reads what is behind the BTH, to the pad. `transport` begins with the BTH and ends before the ICRC.
roce_refusal read_extended(bytes transport, roce_packet& packet) noexcept
{
    const roce_shape& shape = shape_of(packet.headers.bth.opcode);
    if (!shape.known())
        return roce_refusal::unknown_opcode;
    const bytes rest = transport.subspan(bth_bytes);
    if (rest.size() < shape.extended_bytes)
        return roce_refusal::no_extended_headers;
    const std::size_t pad = transport[1] >> 4 & 3, room = rest.size() - shape.extended_bytes;
    if (pad > room)
        return roce_refusal::wrong_pad;
    if (!payload_possible(shape, room - pad))
        return roce_refusal::wrong_payload;
    for_each_field(shape, packet.headers, field_reader{rest.data()});
    packet.payload = rest.subspan(shape.extended_bytes, room - pad);
    return roce_refusal::none;
}

} // namespace

std::string text_of(const roce_gid& address)
{
    std::array<char, INET6_ADDRSTRLEN> text{};
    const bool ipv4 = is_ipv4(address);
    inet_ntop(ipv4 ? AF_INET : AF_INET6, address.data() + (ipv4 ? 12 : 0), text.data(), text.size());
    return text.data();
}

roce_gid gid_of_ipv4(std::span<const std::uint8_t, 4> address) noexcept
{
    roce_gid gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::copy(address.begin(), address.end(), gid.begin() + 12);
    return gid;
}

bool is_ipv4(const roce_gid& address) noexcept
{
    const roce_gid nobody = gid_of_ipv4(std::array<std::uint8_t, 4>{});
    return std::equal(nobody.begin(), nobody.begin() + 12, address.begin());
}

header_address header_address_of(const roce_gid& address) noexcept
{
    if (!is_ipv4(address))
        return {.bytes = address, .l3 = l3_kind::ipv6};
    header_address of{.l3 = l3_kind::ipv4};
    std::copy(address.begin() + 12, address.end(), of.bytes.begin());
    return of;
}

roce_refusal parse_roce(bytes frame, const packet_headers& headers, roce_packet& packet) noexcept
{
    if (const roce_refusal reason = check_datagram(frame, headers); reason != roce_refusal::none)
        return reason;
    const std::size_t icrc_at = headers.l3_end - icrc_bytes, transport_at = headers.l4_offset + udp_bytes;
    const bytes transport = frame.subspan(transport_at, icrc_at - transport_at);
    if ((transport[1] & 0x0f) != 0)
        return roce_refusal::unknown_version;
    packet.headers = {.bth = read_bth(transport.data())};
    packet.payload = {};
    packet.form = read_extended(transport, packet);
    packet.covered = frame.subspan(headers.l3_offset, icrc_at - headers.l3_offset);
    packet.icrc = load_icrc(&frame[icrc_at]);
    return packet.form;
}

roce_path read_path(bytes frame, const packet_headers& headers) noexcept
{
    const std::uint8_t* ip = &frame[headers.l3_offset];
    roce_path path;
    std::memcpy(path.destination_mac.data(), frame.data(), mac_bytes);
    std::memcpy(path.source_mac.data(), &frame[mac_bytes], mac_bytes);
    for (std::size_t at = 2 * mac_bytes; at + 2 < headers.l3_offset; at += tag_bytes)
        path.tags[path.tag_count++] = {.type = load_be<std::uint16_t>(&frame[at]),
                                       .tci = load_be<std::uint16_t>(&frame[at + 2])};
    path.l3 = headers.l3;
    path.source_port = headers.source_port;
    if (headers.l3 == l3_kind::ipv4) {
        path.source = gid_of_ipv4(std::span<const std::uint8_t, 4>(ip + 12, 4));
        path.destination = gid_of_ipv4(std::span<const std::uint8_t, 4>(ip + 16, 4));
        path.identification = load_be<std::uint16_t>(ip + 4);
        path.traffic_class = ip[1];
        path.hop_limit = ip[8];
    } else {
        path.source = headers.source;
        path.destination = headers.destination;
        path.flow_label = load_be<std::uint32_t>(ip) & 0xfffff;
        path.traffic_class = static_cast<std::uint8_t>(load_be<std::uint16_t>(ip) >> 4);
        path.hop_limit = ip[7];
    }
    return path;
}

roce_refusal parse_roce(bytes frame, roce_packet& packet) noexcept
{
    const packet_headers headers = parse(frame, std::nullopt);
    const roce_refusal form = parse_roce(frame, headers, packet);
    if (form == roce_refusal::none || is_invalid_request(form))
        packet.path = read_path(frame, headers);
    return form;
}

} // namespace weftio::net
