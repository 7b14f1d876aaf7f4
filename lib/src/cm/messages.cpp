#include "cm/messages.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "net/byte_order.hpp"

namespace weftio::cm {

namespace {

constexpr std::size_t header_bytes = 24;
constexpr std::uint8_t base_version = 1, cm_class = 7, class_version = 2, method_send = 3;

/// Attributes, in the order of `message`.
constexpr std::array<std::uint16_t, std::variant_size_v<message>> attributes{0x10, 0x11, 0x12, 0x13, 0x14, 0x15,
                                                                             0x16, 0x17, 0x18, 0x19, 0x1a};
constexpr std::array<const char*, std::variant_size_v<message>> names{
    "REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR REQ", "SIDR REP", "LAP", "APR"};

/// Takes numbers out of a message. A field begins at bit `bit` of byte `at`, counted from the most significant one.
class field_reader {
 public:
    explicit field_reader(const std::uint8_t* body) noexcept : body_(body) {}

    template <class Number>
    void number(std::size_t at, unsigned bit, unsigned width, Number& value) const noexcept
    {
        std::uint64_t all = 0;
        const unsigned bytes = (bit + width + 7) / 8;
        for (unsigned byte = 0; byte < bytes; ++byte)
            all = all << 8 | body_[at + byte];
        all >>= bytes * 8 - bit - width;
        value = static_cast<Number>(width == 64 ? all : all & ((std::uint64_t{1} << width) - 1));
    }
    template <std::size_t size>
    void bytes(std::size_t at, std::array<std::uint8_t, size>& value) const noexcept
    {
        std::copy_n(body_ + at, size, value.begin());
    }

 private:
    const std::uint8_t* body_;
};

/// The same, into a message of zeros.
class field_writer {
 public:
    explicit field_writer(std::uint8_t* body) noexcept : body_(body) {}

    template <class Number>
    void number(std::size_t at, unsigned bit, unsigned width, const Number& value) const noexcept
    {
        const unsigned bytes = (bit + width + 7) / 8;
        std::uint64_t all = static_cast<std::uint64_t>(value);
        if (width != 64)
            all &= (std::uint64_t{1} << width) - 1;
        all <<= bytes * 8 - bit - width;
        for (unsigned byte = 0; byte < bytes; ++byte)
            body_[at + byte] = static_cast<std::uint8_t>(body_[at + byte] | all >> (bytes - 1 - byte) * 8);
    }
    template <std::size_t size>
    void bytes(std::size_t at, const std::array<std::uint8_t, size>& value) const noexcept
    {
        std::copy(value.begin(), value.end(), body_ + at);
    }

 private:
    std::uint8_t* body_;
};

// Where the fields of each message are: once, for reading and writing. `Of` is the message, const when it is written.

template <class Fields, class Of>
void ids(const Fields& fields, Of& of)
{
    fields.number(0, 0, 32, of.local_id);
    fields.number(4, 0, 32, of.remote_id);
}

template <class Fields, class Of>
void path_at(std::size_t at, const Fields& fields, Of& of)
{
    fields.number(at, 0, 16, of.local_lid);
    fields.number(at + 2, 0, 16, of.remote_lid);
    fields.bytes(at + 4, of.local_gid);
    fields.bytes(at + 20, of.remote_gid);
    fields.number(at + 36, 0, 20, of.flow_label);
    fields.number(at + 39, 2, 6, of.packet_rate);
    fields.number(at + 40, 0, 8, of.traffic_class);
    fields.number(at + 41, 0, 8, of.hop_limit);
    fields.number(at + 42, 0, 4, of.service_level);
    fields.number(at + 42, 4, 1, of.subnet_local);
    fields.number(at + 43, 0, 5, of.ack_timeout);
}

template <class Fields, class Of>
void lay_out_req(const Fields& fields, Of& of)
{
    fields.number(0, 0, 32, of.local_id);
    fields.number(8, 0, 64, of.service);
    fields.number(16, 0, 64, of.guid);
    fields.number(28, 0, 32, of.queue_key);
    fields.number(32, 0, 24, of.queue);
    fields.number(35, 0, 8, of.responder_resources);
    fields.number(36, 0, 24, of.local_eec);
    fields.number(39, 0, 8, of.initiator_depth);
    fields.number(40, 0, 24, of.remote_eec);
    fields.number(43, 0, 5, of.remote_response_timeout);
    fields.number(43, 5, 2, of.transport);
    fields.number(43, 7, 1, of.flow_control);
    fields.number(44, 0, 24, of.first_psn);
    fields.number(47, 0, 5, of.local_response_timeout);
    fields.number(47, 5, 3, of.retry_count);
    fields.number(48, 0, 16, of.partition_key);
    fields.number(50, 0, 4, of.path_mtu);
    fields.number(50, 4, 1, of.rdc_exists);
    fields.number(50, 5, 3, of.rnr_retry_count);
    fields.number(51, 0, 4, of.most_retries);
    fields.number(51, 4, 1, of.shared_receives);
    fields.number(51, 5, 3, of.extended_transport);
    path_at(52, fields, of.primary);
    path_at(96, fields, of.alternate);
    fields.bytes(140, of.data);
}

template <class Fields, class Of>
void lay_out_rep(const Fields& fields, Of& of)
{
    ids(fields, of);
    fields.number(8, 0, 32, of.queue_key);
    fields.number(12, 0, 24, of.queue);
    fields.number(16, 0, 24, of.local_eec);
    fields.number(20, 0, 24, of.first_psn);
    fields.number(24, 0, 8, of.responder_resources);
    fields.number(25, 0, 8, of.initiator_depth);
    fields.number(26, 0, 5, of.ack_delay);
    fields.number(26, 5, 2, of.failover);
    fields.number(26, 7, 1, of.flow_control);
    fields.number(27, 0, 3, of.rnr_retry_count);
    fields.number(27, 3, 1, of.shared_receives);
    fields.number(28, 0, 64, of.guid);
    fields.bytes(36, of.data);
}

template <class Fields, class Of>
void lay_out_refusal(const Fields& fields, Of& of)
{
    ids(fields, of);
    if constexpr (std::is_same_v<std::remove_const_t<Of>, rej>) {
        fields.number(8, 0, 2, of.what);
        fields.number(9, 0, 7, of.info_bytes);
        fields.number(10, 0, 16, of.reason);
    } else {
        fields.number(8, 0, 8, of.info_bytes);
        fields.number(9, 0, 8, of.status);
    }
    fields.bytes(12, of.info);
    fields.bytes(84, of.data);
}

template <class Fields, class Of>
void lay_out_disconnect(const Fields& fields, Of& of)
{
    ids(fields, of);
    if constexpr (std::is_same_v<std::remove_const_t<Of>, dreq>) {
        fields.number(8, 0, 24, of.remote_queue);
        fields.bytes(12, of.data);
    } else {
        fields.number(12, 0, 24, of.remote_queue);
        fields.bytes(64, of.data);
    }
}

template <class Fields, class Of>
void lay_out_service(const Fields& fields, Of& of)
{
    fields.number(0, 0, 32, of.request_id);
    if constexpr (std::is_same_v<std::remove_const_t<Of>, sidr_req>) {
        fields.number(4, 0, 16, of.partition_key);
        fields.number(8, 0, 64, of.service);
        fields.bytes(16, of.data);
    } else {
        fields.number(4, 0, 8, of.status);
        fields.number(5, 0, 8, of.info_bytes);
        fields.number(8, 0, 24, of.queue);
        fields.number(12, 0, 64, of.service);
        fields.number(20, 0, 32, of.queue_key);
        fields.bytes(24, of.info);
        fields.bytes(96, of.data);
    }
}

template <class Fields, class Of>
void lay_out(const Fields& fields, Of& of)
{
    using body = std::remove_const_t<Of>;
    if constexpr (std::is_same_v<body, req>) {
        lay_out_req(fields, of);
    } else if constexpr (std::is_same_v<body, rep>) {
        lay_out_rep(fields, of);
    } else if constexpr (std::is_same_v<body, rej> || std::is_same_v<body, apr>) {
        lay_out_refusal(fields, of);
    } else if constexpr (std::is_same_v<body, dreq> || std::is_same_v<body, lap>) {
        lay_out_disconnect(fields, of);
    } else if constexpr (std::is_same_v<body, sidr_req> || std::is_same_v<body, sidr_rep>) {
        lay_out_service(fields, of);
    } else if constexpr (std::is_same_v<body, mra>) {
        ids(fields, of);
        fields.number(8, 0, 2, of.what);
        fields.number(9, 0, 5, of.service_timeout);
        fields.bytes(10, of.data);
    } else { // RTU, DREP
        ids(fields, of);
        fields.bytes(8, of.data);
    }
}

/// A message without values, of this index in `message`.
template <std::size_t... all>
message empty_message(std::size_t index, std::index_sequence<all...>)
{
    message body;
    ((index == all ? static_cast<void>(body.emplace<all>()) : static_cast<void>(0)), ...);
    return body;
}

roce_gid load_address(const std::uint8_t* from, bool ipv4)
{
    roce_gid address;
    std::copy_n(from, address.size(), address.begin());
    return ipv4 ? net::gid_of_ipv4(std::span<const std::uint8_t, 4>(from + 12, 4)) : address;
}

/// IPv4 stands behind zeros, not behind ::ffff: as in a GID.
void store_address(std::uint8_t* to, const roce_gid& address, bool ipv4)
{
    std::copy(address.begin(), address.end(), to);
    if (ipv4)
        std::fill_n(to, 12, std::uint8_t{0});
}

} // namespace

mad_refusal read(std::span<const std::uint8_t> bytes, mad& to)
{
    if (bytes.size() != mad_bytes)
        return mad_refusal::wrong_size;
    if (bytes[0] != base_version)
        return mad_refusal::wrong_base;
    if (bytes[1] != cm_class)
        return mad_refusal::other_class;
    if (bytes[2] != class_version)
        return mad_refusal::unknown_version;
    if (bytes[3] != method_send)
        return mad_refusal::wrong_method;
    const auto found = std::find(attributes.begin(), attributes.end(), net::load_be<std::uint16_t>(&bytes[16]));
    if (found == attributes.end())
        return mad_refusal::unknown_attribute;
    to.transaction = net::load_be<std::uint64_t>(&bytes[8]);
    to.body = empty_message(static_cast<std::size_t>(found - attributes.begin()),
                            std::make_index_sequence<std::variant_size_v<message>>());
    std::visit([&](auto& body) { lay_out(field_reader(&bytes[header_bytes]), body); }, to.body);
    return mad_refusal::none;
}

std::array<std::uint8_t, mad_bytes> write(const mad& from)
{
    std::array<std::uint8_t, mad_bytes> bytes{base_version, cm_class, class_version, method_send};
    net::store_be(&bytes[8], from.transaction);
    net::store_be(&bytes[16], attributes[from.body.index()]);
    std::visit([&](const auto& body) { lay_out(field_writer(&bytes[header_bytes]), body); }, from.body);
    return bytes;
}

const char* name_of(const message& body) noexcept
{
    return names[body.index()];
}

std::optional<ip_header> read_ip_header(std::span<const std::uint8_t> data)
{
    if (data.size() < ip_header::bytes || data[0] != 0)
        return std::nullopt;
    const unsigned version = data[1] >> 4;
    if (version != 4 && version != 6)
        return std::nullopt;
    return ip_header{.source_port = net::load_be<std::uint16_t>(&data[2]),
                     .source = load_address(&data[4], version == 4),
                     .destination = load_address(&data[20], version == 4)};
}

void write_ip_header(std::span<std::uint8_t, ip_header::bytes> to, const ip_header& from)
{
    const bool ipv4 = net::is_ipv4(from.destination);
    to[0] = 0;
    to[1] = ipv4 ? 4 << 4 : 6 << 4;
    net::store_be(&to[2], from.source_port);
    store_address(&to[4], from.source, ipv4);
    store_address(&to[20], from.destination, ipv4);
}

} // namespace weftio::cm
