#include "send/wifi.hpp"

#include <algorithm>
#include <cstring>

#include "reader/fields.hpp"

namespace weftio::replay {

namespace {

// IEEE 802.11-2020, 9.2.4.1 "Frame Control field".
constexpr std::uint8_t type_mask = 0x0c, type_data = 0x08, no_data = 0x40, qos = 0x80; // first byte
constexpr std::uint8_t to_ds = 0x01, from_ds = 0x02, more_fragments = 0x04, encrypted = 0x40,
                       has_ht_control = 0x80; // second
constexpr std::size_t short_header = 24;

/// Removes LLC/SNAP (RFC 1042, 802.1H), so that the payload gets its Ethernet type.
void take_snap(ethernet_parts& parts)
{
    constexpr std::array<std::uint8_t, 5> snap{0xaa, 0xaa, 0x03, 0, 0};
    bool is_snap = parts.payload.size() >= 8 && std::memcmp(parts.payload.data(), snap.data(), snap.size()) == 0;
    auto last = is_snap ? std::to_integer<unsigned>(parts.payload[5]) : 1u;
    if (last != 0 && last != 0xf8)
        return;
    parts.type = fields(parts.payload, big_endian).u16(6);
    parts.payload = parts.payload.subspan(8);
}

/// Takes the source and destination from the four addresses (9.3.2.1, "Address field contents").
void take_addresses(const fields& header, std::uint8_t flags, ethernet_parts& parts)
{
    constexpr std::size_t first = 4, second = 10, third = 16, fourth = 24;
    auto read = [&](std::size_t at) {
        std::array<std::uint8_t, 6> address{};
        for (std::size_t byte = 0; byte < address.size(); ++byte)
            address[byte] = header.u8(at + byte);
        return address;
    };
    bool to = flags & to_ds, from = flags & from_ds;
    parts.destination = read(to ? third : first);
    parts.source = read(to && from ? fourth : from ? third : second);
}

parts_or data_frame(std::span<const std::byte> bytes, bool padded)
{
    if (bytes.size() < short_header)
        return not_convertible::runt;
    fields header(bytes, little_endian);
    std::uint8_t kind = header.u8(0), flags = header.u8(1);
    bool fragment = (flags & more_fragments) || (header.u16(22) & 0xf) != 0;
    if ((kind & type_mask) != type_data || (kind & no_data) || (flags & encrypted) || fragment)
        return not_convertible::link_type;
    std::size_t four_addresses = (flags & to_ds) && (flags & from_ds) ? 6 : 0;
    std::size_t end =
        short_header + four_addresses + (kind & qos ? 2 : 0) + (kind & qos && flags & has_ht_control ? 4 : 0);
    if (padded)
        end = (end + 3) / 4 * 4;
    if (bytes.size() < end + 8)
        return not_convertible::runt;
    constexpr std::uint8_t several_packets = 0x80; // A-MSDU
    if ((kind & qos) && (header.u8(short_header + four_addresses) & several_packets))
        return not_convertible::link_type;
    ethernet_parts parts{.payload = bytes.subspan(end)};
    take_addresses(header, flags, parts);
    take_snap(parts);
    return parts;
}

} // namespace

parts_or from_802_11(std::span<const std::byte> bytes)
{
    return data_frame(bytes, false);
}

/// https://www.radiotap.org: bit 0 is a timestamp of 8 aligned bytes, bit 1 the flags; bit 31 announces another
/// bitmask.
parts_or from_radiotap(std::span<const std::byte> bytes, std::uint32_t fcs_bytes)
{
    constexpr std::uint8_t has_fcs = 0x10, is_padded = 0x20, is_bad = 0x40;
    if (bytes.size() < 8)
        return not_convertible::runt;
    fields header(bytes, little_endian);
    std::size_t end = header.u16(2), at = 8;
    if (end < 8 || end > bytes.size())
        return not_convertible::runt;
    std::uint32_t present = header.u32(4);
    for (std::uint32_t mask = present; mask >> 31 && at + 4 <= end; at += 4)
        mask = header.u32(at);
    if (present & 1)
        at = (at + 7) / 8 * 8 + 8;
    std::uint8_t flags = present & 2 && at < end ? header.u8(at) : std::uint8_t{0};
    if (flags & is_bad)
        return not_convertible::link_type;
    auto frame = bytes.subspan(end);
    if (flags & has_fcs)
        frame = frame.first(frame.size() - std::min<std::size_t>(frame.size(), fcs_bytes));
    return data_frame(frame, flags & is_padded);
}

} // namespace weftio::replay
