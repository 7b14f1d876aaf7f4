#include "nic/soft/send/ethernet_entry.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/guarded.hpp"
#include "keys/queue_keys.hpp"
#include "net/packet_headers.hpp"

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t words_per_segment = entry::words_per_segment;
constexpr std::uint32_t wait_on_time = WEFTIO_OPCODE_WAIT | WEFTIO_WAIT_ON_TIME << 8;
constexpr std::uint32_t ethernet_header_bytes = 14, vlan_tag_bytes = 4, most_vlan_tags = 2;

std::uint32_t segments_for(std::uint32_t bytes) noexcept
{
    return (bytes + 15) / 16;
}

/// Decodes the pointer segment or inline segment at index `at`, and moves `at` past it.
refusal take_segment(const entry& entry, const keys::queue_keys& keys, std::size_t& at, frame_pieces& out) noexcept
{
    auto data = segment_at<weftio_wqe_data_segment>(entry, at);
    std::uint32_t count = weftio_swap32(data.byte_count_be);
    const std::byte* bytes = nullptr;
    bool device_only = false;
    keys::located found;
    if (count & WEFTIO_INLINE_SEGMENT) {
        count &= ~WEFTIO_INLINE_SEGMENT;
        if (count > (entry.segments - at) * 16 - 4)
            return refusal::wrong_size;
        bytes = reinterpret_cast<const std::byte*>(&entry.words[at * words_per_segment + 1]);
        at += segments_for(count + 4);
        out.must_be_copied = true;
    } else {
        std::uint64_t length = count == 0 ? std::uint64_t{1} << 31 : count;
        if (const refusal why =
                keys.resolve(weftio_swap32(data.lkey_be), weftio_swap64(data.address_be), length, access::none, found);
            why != refusal::none)
            return why;
        if (count == 0)
            return refusal::frame_too_long;
        device_only = !found.cpu;
        bytes = device_only ? reinterpret_cast<const std::byte*>(found.device_address) : found.cpu;
        if (device_only && out.device && out.device != found.device)
            return refusal::two_devices;
        if (device_only)
            out.device = found.device;
        out.must_be_copied = out.must_be_copied || !found.lends;
        at += 1;
    }
    if (count == 0)
        return refusal::no_payload;
    out.pieces[out.count++] = {bytes, count, device_only, found.by};
    out.bytes += count;
    return refusal::none;
}

/// Decodes the Ethernet segment and its inline header bytes, and moves `at` past them.
refusal take_ethernet(const entry& entry, std::size_t& at, frame_pieces& out) noexcept
{
    auto ethernet = segment_at<weftio_wqe_ethernet_segment>(entry, at);
    std::uint32_t inlined = weftio_swap16(ethernet.inline_header_bytes_be);
    if (inlined & 0x8000u)
        return refusal::wrong_segment; // VLAN insertion shares these bits
    std::uint32_t more = inlined > 2 ? segments_for(inlined - 2) : 0;
    if (at + 1 + more > entry.segments)
        return refusal::wrong_size;
    if (inlined != 0) {
        out.pieces[out.count++] = {reinterpret_cast<const std::byte*>(&entry.words[at * words_per_segment]) + 14,
                                   inlined};
        out.bytes += inlined;
        out.must_be_copied = true;
    }
    at += 1 + more;
    return refusal::none;
}

/// 0: there is no such byte, the CPU cannot access it, or its memory has gone.
std::uint32_t byte_at(const frame_pieces& frame, std::uint32_t offset) noexcept
{
    std::uint8_t byte = 0;
    for (std::uint32_t piece = 0; piece < frame.count; offset -= frame.pieces[piece++].count)
        if (offset < frame.pieces[piece].count)
            return frame.pieces[piece].device_only || !core::guarded_copy(&byte, &frame.pieces[piece].bytes[offset], 1)
                       ? 0
                       : byte;
    return 0;
}

/// Number of tags by which the frame may be longer.
std::uint32_t vlan_tags(const frame_pieces& frame) noexcept
{
    const auto is_tag_at = [&](std::uint32_t at) {
        return net::is_vlan_type(static_cast<std::uint16_t>(byte_at(frame, at) << 8 | byte_at(frame, at + 1)));
    };
    std::uint32_t tags = 0;
    while (tags < most_vlan_tags && is_tag_at(12 + tags * vlan_tag_bytes))
        ++tags;
    return tags;
}

} // namespace

refusal fetch(const entry_ring& ring, std::uint32_t index, std::uint32_t available, entry& out) noexcept
{
    if (refusal reason = fetch_any(ring, index, available, out); reason != refusal::none)
        return reason;
    if (out.opcode == WEFTIO_OPCODE_NOP)
        return refusal::none;
    if (out.opcode == wait_on_time)
        return out.segments == 3 ? refusal::none : refusal::wrong_size;
    if (out.opcode != WEFTIO_OPCODE_SEND)
        return refusal::unknown_opcode;
    if (out.segments < 2)
        return refusal::wrong_size;
    out.cs_flags = segment_at<weftio_wqe_ethernet_segment>(out, 1).cs_flags;
    return refusal::none;
}

refusal gather(const entry& entry, const keys::queue_keys& keys, std::uint32_t mtu, frame_pieces& out) noexcept
{
    const std::uint32_t longest = mtu + ethernet_header_bytes;
    out.count = out.bytes = 0;
    out.must_be_copied = false;
    out.device = nullptr;
    std::size_t at = 1;
    refusal reason = take_ethernet(entry, at, out);
    while (reason == refusal::none && at < entry.segments && out.bytes <= longest + most_vlan_tags * vlan_tag_bytes)
        reason = take_segment(entry, keys, at, out);
    if (reason != refusal::none)
        return reason;
    if (out.bytes > longest && out.bytes > longest + vlan_tags(out) * vlan_tag_bytes)
        return refusal::frame_too_long;
    return out.bytes == 0 ? refusal::no_payload : refusal::none;
}

refusal read_wait(const entry& entry, std::uint64_t& deadline_ns) noexcept
{
    auto wait = segment_at<weftio_wqe_wait_segment>(entry, 1);
    std::uint64_t value = weftio_swap64(wait.value_be);
    if ((weftio_swap32(wait.operation_be) & 0x1f) != WEFTIO_WAIT_CYCLIC_SMALLER ||
        (value & 0xffffffffu) >= 1'000'000'000u)
        return refusal::wrong_wait;
    deadline_ns = weftio_real_time_to_ns(value);
    return refusal::none;
}

} // namespace weftio::nic::soft
