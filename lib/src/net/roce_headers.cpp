#include "net/roce_headers.hpp"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "net/byte_order.hpp"
#include "net/roce_rules.hpp"

namespace weftio::net {
namespace {

using bytes = std::span<const std::uint8_t>;

constexpr std::uint16_t ether_type_ipv4 = 0x0800, ether_type_ipv6 = 0x86dd;
constexpr std::size_t mac_bytes = 6, tag_bytes = 4;
constexpr std::size_t ipv4_bytes = 20, ipv6_bytes = 40, udp_bytes = 8, bth_bytes = 12;

std::size_t ip_bytes_of(l3_kind l3) noexcept
{
    return l3 == l3_kind::ipv4 ? ipv4_bytes : ipv6_bytes;
}

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

void read_path(bytes frame, const packet_headers& headers, roce_path& path) noexcept
{
    const std::uint8_t* ip = &frame[headers.l3_offset];
    path = {};
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
}

roce_bth read_bth(const std::uint8_t* at) noexcept
{
    return {.opcode = static_cast<roce_opcode>(at[0]),
            .solicited = (at[1] & 0x80) != 0,
            .migrated = (at[1] & 0x40) != 0,
            .ack_request = (at[8] & 0x80) != 0,
            .fecn = (at[4] & 0x80) != 0,
            .becn = (at[4] & 0x40) != 0,
            .partition_key = load_be<std::uint16_t>(at + 2),
            .destination_qp = load_be<std::uint32_t, 3>(at + 5),
            .psn = load_be<std::uint32_t, 3>(at + 9)};
}

/// Reads or writes each field of the extended headers of a packet, in the order of the wire, by `step<bytes>(field)`.
template <class Headers, class Step>
void for_each_field(const roce_shape& shape, Headers& headers, Step step) noexcept
{
    std::uint8_t reserved = 0;
    if (shape.has_deth) {
        step.template operator()<4>(headers.queue_key);
        step.template operator()<1>(reserved);
        step.template operator()<3>(headers.source_qp);
    }
    if (shape.has_reth || shape.has_atomic) {
        step.template operator()<8>(headers.address);
        step.template operator()<4>(headers.remote_key);
    }
    if (shape.has_reth)
        step.template operator()<4>(headers.dma_bytes);
    if (shape.has_atomic) {
        step.template operator()<8>(headers.swap_or_add);
        step.template operator()<8>(headers.compare);
    }
    if (shape.has_aeth) {
        step.template operator()<1>(headers.syndrome);
        step.template operator()<3>(headers.msn);
    }
    if (shape.has_atomic_ack)
        step.template operator()<8>(headers.original);
    if (shape.has_immediate)
        step.template operator()<4>(headers.immediate);
    if (shape.has_invalidate)
        step.template operator()<4>(headers.invalidate_key);
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

struct field_writer {
    std::uint8_t* at;

    template <std::size_t count, class Number>
    void operator()(const Number& field) noexcept
    {
        store_be<Number, count>(at, field);
        at += count;
    }
};

bool payload_possible(const roce_shape& shape, std::size_t payload_bytes) noexcept
{
    if (shape.operation == roce_operation::congestion || !shape.takes_payload)
        return payload_fits(shape, payload_bytes, largest_path_mtu);
    return payload_bytes <= largest_path_mtu;
}

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

// The other way.

std::size_t write_link(std::uint8_t* to, const roce_path& path) noexcept
{
    std::memcpy(to, path.destination_mac.data(), mac_bytes);
    std::memcpy(to + mac_bytes, path.source_mac.data(), mac_bytes);
    std::size_t at = 2 * mac_bytes;
    for (std::size_t tag = 0; tag < path.tag_count; ++tag, at += tag_bytes) {
        store_be(to + at, path.tags[tag].type);
        store_be(to + at + 2, path.tags[tag].tci);
    }
    store_be(to + at, path.l3 == l3_kind::ipv4 ? ether_type_ipv4 : ether_type_ipv6);
    return at + 2;
}

/// RFC 791, section 3.1; the checksum: RFC 1071.
void write_ipv4(std::uint8_t* to, const roce_path& path, std::size_t udp_length) noexcept
{
    const std::uint8_t fixed[] = {0x45, path.traffic_class, 0, 0, 0, 0, 0x40, 0, path.hop_limit, IPPROTO_UDP, 0, 0};
    std::memcpy(to, fixed, sizeof fixed);
    store_be(to + 2, static_cast<std::uint16_t>(ipv4_bytes + udp_length));
    store_be(to + 4, path.identification);
    std::memcpy(to + 12, &path.source[12], 4);
    std::memcpy(to + 16, &path.destination[12], 4);
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < ipv4_bytes; at += 2)
        sum += load_be<std::uint16_t>(to + at);
    sum = (sum & 0xffff) + (sum >> 16);
    store_be(to + 10, static_cast<std::uint16_t>(~(sum + (sum >> 16))));
}

/// RFC 8200, section 3.
void write_ipv6(std::uint8_t* to, const roce_path& path, std::size_t udp_length) noexcept
{
    store_be(to, 6u << 28 | std::uint32_t{path.traffic_class} << 20 | (path.flow_label & 0xfffff));
    store_be(to + 4, static_cast<std::uint16_t>(udp_length));
    to[6] = IPPROTO_UDP;
    to[7] = path.hop_limit;
    std::memcpy(to + 8, path.source.data(), path.source.size());
    std::memcpy(to + 24, path.destination.data(), path.destination.size());
}

void write_udp(std::uint8_t* to, const roce_path& path, std::size_t udp_length) noexcept
{
    store_be(to, path.source_port);
    store_be(to + 2, roce_port);
    store_be(to + 4, static_cast<std::uint16_t>(udp_length));
    store_be(to + 6, std::uint16_t{0}); // no checksum
}

void write_bth(std::uint8_t* to, const roce_bth& bth, std::uint32_t pad_bytes) noexcept
{
    to[0] = static_cast<std::uint8_t>(bth.opcode);
    to[1] = static_cast<std::uint8_t>(bth.solicited * 0x80u | bth.migrated * 0x40u | pad_bytes << 4);
    store_be(to + 2, bth.partition_key);
    to[4] = static_cast<std::uint8_t>(bth.fecn * 0x80u | bth.becn * 0x40u);
    store_be<std::uint32_t, 3>(to + 5, bth.destination_qp);
    to[8] = static_cast<std::uint8_t>(bth.ack_request * 0x80u);
    store_be<std::uint32_t, 3>(to + 9, bth.psn);
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
    read_path(frame, headers, packet.path);
    packet.covered = frame.subspan(headers.l3_offset, icrc_at - headers.l3_offset);
    packet.icrc = load_icrc(&frame[icrc_at]);
    return packet.form;
}

roce_refusal parse_roce(bytes frame, roce_packet& packet) noexcept
{
    return parse_roce(frame, parse(frame, std::nullopt), packet);
}

std::size_t roce_headers_bytes(const roce_path& path, roce_opcode opcode) noexcept
{
    return icrc_offset(path) + ip_bytes_of(path.l3) + udp_bytes + bth_bytes + shape_of(opcode).extended_bytes;
}

std::size_t build_roce(std::span<std::uint8_t> to, const roce_path& path, const roce_headers& headers,
                       std::size_t payload_bytes) noexcept
{
    const roce_shape& shape = shape_of(headers.bth.opcode);
    const std::size_t all = roce_headers_bytes(path, headers.bth.opcode);
    if (!shape.known() || path.tag_count > most_roce_tags || to.size() < all || !payload_possible(shape, payload_bytes))
        return 0;
    const std::uint32_t pad = pad_of(static_cast<std::uint32_t>(payload_bytes));
    const std::size_t udp_length = udp_bytes + bth_bytes + shape.extended_bytes + payload_bytes + pad + icrc_bytes;
    std::uint8_t* const ip = to.data() + write_link(to.data(), path);
    if (path.l3 == l3_kind::ipv4)
        write_ipv4(ip, path, udp_length);
    else
        write_ipv6(ip, path, udp_length);
    std::uint8_t* const udp = ip + ip_bytes_of(path.l3);
    write_udp(udp, path, udp_length);
    write_bth(udp + udp_bytes, headers.bth, pad);
    for_each_field(shape, headers, field_writer{udp + udp_bytes + bth_bytes});
    return all;
}

std::size_t build_whole_roce(std::span<std::uint8_t> to, const roce_path& path, const roce_headers& headers,
                             bytes payload) noexcept
{
    const std::size_t pad = pad_of(static_cast<std::uint32_t>(payload.size()));
    const std::size_t behind = payload.size() + pad + icrc_bytes;
    if (to.size() < behind)
        return 0;
    const std::size_t front = build_roce(to.first(to.size() - behind), path, headers, payload.size());
    if (front == 0)
        return 0;
    icrc sum(to.subspan(icrc_offset(path), front - icrc_offset(path)));
    sum.copy(&to[front], payload);
    return front + payload.size() + sum.finish(&to[front + payload.size()], pad);
}

} // namespace weftio::net
