#include "net/roce_front.hpp"

#include <cstring>

#include <netinet/in.h>

#include "net/byte_order.hpp"
#include "net/roce_layout.hpp"

namespace weftio::net {
namespace {

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

/// RFC 791, section 3.1; length and checksum: set_ipv4_length().
void write_ipv4(std::uint8_t* to, const roce_path& path) noexcept
{
    const std::uint8_t fixed[] = {0x45, path.traffic_class, 0, 0, 0, 0, 0x40, 0, path.hop_limit, IPPROTO_UDP, 0, 0};
    std::memcpy(to, fixed, sizeof fixed);
    store_be(to + 4, path.identification);
    std::memcpy(to + 12, &path.source[12], 4);
    std::memcpy(to + 16, &path.destination[12], 4);
}

/// The checksum: RFC 1071.
void set_ipv4_length(std::uint8_t* ip, std::size_t udp_length) noexcept
{
    store_be(ip + 2, static_cast<std::uint16_t>(ipv4_header_bytes + udp_length));
    store_be(ip + 10, std::uint16_t{0});
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < ipv4_header_bytes; at += 2)
        sum += load_be<std::uint16_t>(ip + at);
    sum = (sum & 0xffff) + (sum >> 16);
    store_be(ip + 10, static_cast<std::uint16_t>(~(sum + (sum >> 16))));
}

/// RFC 8200, section 3.
void write_ipv6(std::uint8_t* to, const roce_path& path) noexcept
{
    store_be(to, 6u << 28 | std::uint32_t{path.traffic_class} << 20 | (path.flow_label & 0xfffff));
    to[6] = IPPROTO_UDP;
    to[7] = path.hop_limit;
    std::memcpy(to + 8, path.source.data(), path.source.size());
    std::memcpy(to + 24, path.destination.data(), path.destination.size());
}

/// Without a checksum.
void write_udp(std::uint8_t* to, const roce_path& path) noexcept
{
    store_be(to, path.source_port);
    store_be(to + 2, roce_port);
    store_be(to + 6, std::uint16_t{0});
}

void write_bth(std::uint8_t* to, const roce_bth& bth, std::uint32_t pad_bytes) noexcept
{
    const std::uint32_t flags = bth.solicited * 0x80u | bth.migrated * 0x40u | pad_bytes << 4;
    store_be(to, static_cast<std::uint32_t>(bth.opcode) << 24 | flags << 16 | bth.partition_key);
    store_be(to + 4, (bth.fecn * 0x80u | bth.becn * 0x40u) << 24 | (bth.destination_qp & 0xffffff));
    store_be(to + 8, (bth.ack_request * 0x80u) << 24 | (bth.psn & 0xffffff));
}

/// Copies 16 bytes or more: the last 16 may be copied twice.
void copy_front(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) noexcept
{
    constexpr std::size_t block = 16;
    for (std::size_t at = 0; at + block < bytes; at += block)
        std::memcpy(to + at, from + at, block);
    std::memcpy(to + bytes - block, from + bytes - block, block);
}

struct field_writer {
    std::uint8_t* at;

    template <std::size_t count, class Number>
    void operator()(const Number& field) noexcept
    {
        store_be<Number, count>(at, field);
        at += count;
    }
};

} // namespace

roce_front::roce_front(const roce_path& path) noexcept
{
    if (path.tag_count > most_roce_tags)
        return;
    ip_at_ = static_cast<std::uint8_t>(write_link(front_.data(), path));
    bytes_ = static_cast<std::uint8_t>(ip_at_ + ip_bytes_of(path.l3) + udp_bytes);
    if (path.l3 == l3_kind::ipv4)
        write_ipv4(&front_[ip_at_], path);
    else
        write_ipv6(&front_[ip_at_], path);
    write_udp(&front_[bytes_ - udp_bytes], path);
}

void roce_front::set_length(std::size_t udp_length) noexcept
{
    udp_length_ = static_cast<std::uint16_t>(udp_length);
    std::uint8_t* const ip = &front_[ip_at_];
    store_be(&front_[bytes_ - udp_bytes + 4], udp_length_);
    if (bytes_ - ip_at_ == ipv4_header_bytes + udp_bytes)
        set_ipv4_length(ip, udp_length);
    else
        store_be(ip + 4, udp_length_);
    sum_ = icrc::front_of(std::span(front_).subspan(ip_at_, bytes_ - std::size_t{ip_at_}));
}

std::size_t roce_front::build(std::span<std::uint8_t> to, const roce_headers& headers,
                              std::size_t payload_bytes) noexcept
{
    const roce_shape& shape = shape_of(headers.bth.opcode);
    const std::size_t all = bytes_ + bth_bytes + shape.extended_bytes;
    if (!shape.known() || bytes_ == 0 || to.size() < all || !payload_possible(shape, payload_bytes))
        return 0;
    const std::uint32_t pad = pad_of(static_cast<std::uint32_t>(payload_bytes));
    const std::size_t udp_length = udp_bytes + bth_bytes + shape.extended_bytes + payload_bytes + pad + icrc_bytes;
    if (udp_length != udp_length_)
        set_length(udp_length);
    copy_front(to.data(), front_.data(), bytes_);
    write_bth(&to[bytes_], headers.bth, pad);
    for_each_field(shape, headers, field_writer{&to[bytes_ + bth_bytes]});
    return all;
}

std::size_t roce_headers_bytes(const roce_path& path, roce_opcode opcode) noexcept
{
    return icrc_offset(path) + ip_bytes_of(path.l3) + udp_bytes + bth_bytes + shape_of(opcode).extended_bytes;
}

std::size_t build_roce(std::span<std::uint8_t> to, const roce_path& path, const roce_headers& headers,
                       std::size_t payload_bytes) noexcept
{
    return roce_front(path).build(to, headers, payload_bytes);
}

std::size_t build_whole_roce(std::span<std::uint8_t> to, const roce_path& path, const roce_headers& headers,
                             std::span<const std::uint8_t> payload) noexcept
{
    const std::size_t pad = pad_of(static_cast<std::uint32_t>(payload.size()));
    const std::size_t behind = payload.size() + pad + icrc_bytes;
    if (to.size() < behind)
        return 0;
    roce_front front(path);
    const std::size_t begin = front.build(to.first(to.size() - behind), headers, payload.size());
    if (begin == 0)
        return 0;
    icrc sum = front.begin_icrc(to.subspan(front.bth_offset(), begin - front.bth_offset()));
    sum.copy(&to[begin], payload);
    return begin + payload.size() + sum.finish(&to[begin + payload.size()], pad);
}

} // namespace weftio::net
