#include "nic/soft/rdma/rdma_entry.hpp"

#include <algorithm>
#include <cstring>

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t words_per_segment = entry::words_per_segment, segment_bytes = 16;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;

/// Decodes an opcode. @return false: it is no opcode of an RDMA queue
bool read_opcode(std::uint32_t opcode, roce::send_request& out) noexcept
{
    using enum net::roce_operation;
    out.extra = net::roce_extra::none;
    switch (opcode) {
        case WEFTIO_OPCODE_NOP: out.operation = none; return true;
        case WEFTIO_OPCODE_SEND_INVALIDATE:
            out.extra = net::roce_extra::invalidate;
            out.operation = send;
            return true;
        case WEFTIO_OPCODE_SEND_IMMEDIATE: out.extra = net::roce_extra::immediate; [[fallthrough]];
        case WEFTIO_OPCODE_SEND: out.operation = send; return true;
        case WEFTIO_OPCODE_RDMA_WRITE_IMMEDIATE: out.extra = net::roce_extra::immediate; [[fallthrough]];
        case WEFTIO_OPCODE_RDMA_WRITE: out.operation = write; return true;
        case WEFTIO_OPCODE_RDMA_READ: out.operation = read_request; return true;
        case WEFTIO_OPCODE_COMPARE_SWAP: out.operation = compare_swap; return true;
        case WEFTIO_OPCODE_FETCH_ADD: out.operation = fetch_add; return true;
        default: return false;
    }
}

void read_remote(const entry& entry, roce::send_request& out) noexcept
{
    const auto remote = segment_at<weftio_wqe_remote_segment>(entry, 1);
    out.remote_address = weftio_swap64(remote.address_be);
    out.remote_key = weftio_swap32(remote.rkey_be);
}

void read_atomic(const entry& entry, roce::send_request& out) noexcept
{
    const auto atomic = segment_at<weftio_wqe_atomic_segment>(entry, 2);
    out.swap_or_add = weftio_swap64(atomic.swap_or_add_be);
    out.compare = weftio_swap64(atomic.compare_be);
}

/// Adds up the lengths of the data segments, and checks the memory that they name.
refusal read_data(const entry& entry, const keys::queue_keys& keys, rdma_entry& out) noexcept
{
    std::uint64_t bytes = 0;
    for (data_segments data(entry, out.first_data); data.more();) {
        local_piece piece;
        if (const refusal reason = data.next(piece); reason != refusal::none)
            return reason;
        if (piece.inlined && out.scatters())
            return refusal::wrong_segment;
        std::byte* at = nullptr;
        const access needed = out.scatters() ? access::local_write : access::none;
        if (const refusal reason = piece.inlined ? refusal::none : find(piece, keys, needed, at);
            reason != refusal::none)
            return reason;
        bytes += piece.bytes;
        if (bytes > most_bytes)
            return out.scatters() ? refusal::read_too_long : refusal::message_too_long;
    }
    out.request.bytes = static_cast<std::uint32_t>(bytes);
    return refusal::none;
}

} // namespace

local_piece piece_of(const weftio_wqe_data_segment& pointer) noexcept
{
    const std::uint32_t count = weftio_swap32(pointer.byte_count_be);
    return {.key = weftio_swap32(pointer.lkey_be),
            .address = weftio_swap64(pointer.address_be),
            .bytes = count == 0 ? most_bytes : count};
}

bool byte_window::cut(local_piece& piece) noexcept
{
    if (offset >= piece.bytes) {
        offset -= piece.bytes;
        return false;
    }
    if (piece.inlined)
        piece.inlined += offset;
    piece.address += offset;
    piece.bytes = std::min(piece.bytes - offset, bytes);
    bytes -= piece.bytes;
    offset = 0;
    return true;
}

refusal data_segments::next(local_piece& out) noexcept
{
    const auto data = segment_at<weftio_wqe_data_segment>(entry_, at_);
    const std::uint32_t count = weftio_swap32(data.byte_count_be);
    if ((count & WEFTIO_INLINE_SEGMENT) == 0) {
        out = piece_of(data);
        ++at_;
        return refusal::none;
    }
    const std::uint32_t bytes = count & ~WEFTIO_INLINE_SEGMENT;
    if (bytes > (entry_.segments - at_) * segment_bytes - sizeof count)
        return refusal::wrong_size;
    out = {.inlined = reinterpret_cast<const std::uint8_t*>(&entry_.words[at_ * words_per_segment + 1]),
           .bytes = bytes};
    at_ += (bytes + static_cast<std::uint32_t>(sizeof count) + segment_bytes - 1) / segment_bytes;
    return refusal::none;
}

refusal find(const local_piece& piece, const keys::queue_keys& keys, access needed, std::byte*& at) noexcept
{
    return keys.resolve_for_cpu(piece.key, piece.address, piece.bytes, needed, at);
}

refusal read_rdma(const entry& entry, const keys::queue_keys& keys, rdma_entry& out) noexcept
{
    roce::send_request& request = out.request;
    if (!read_opcode(entry.opcode, request))
        return refusal::unknown_opcode;
    const std::uint32_t flags = entry.words[2] >> 24;
    request.solicited = (flags & WEFTIO_SOLICITED) != 0;
    request.fence = flags >= WEFTIO_FENCE;
    request.blocks = static_cast<std::uint8_t>(entry.blocks());
    request.immediate_or_key = weftio_swap32(entry.words[3]);
    request.bytes = 0;
    if (request.operation == net::roce_operation::none)
        return refusal::none;
    const bool atomic = out.scatters() && request.operation != net::roce_operation::read_request;
    out.first_data = request.operation == net::roce_operation::send ? 1 : atomic ? 3 : 2;
    if (entry.segments < out.first_data)
        return refusal::wrong_size;
    if (request.operation != net::roce_operation::send)
        read_remote(entry, request);
    if (atomic)
        read_atomic(entry, request);
    if (atomic && request.remote_address % sizeof(std::uint64_t) != 0)
        return refusal::misaligned_atomic;
    if (const refusal reason = read_data(entry, keys, out); reason != refusal::none)
        return reason;
    return atomic && request.bytes != sizeof(std::uint64_t) ? refusal::wrong_atomic : refusal::none;
}

std::uint32_t fingerprint_of(const entry& entry) noexcept
{
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15; // each step is a bijection: any changed word changes the sum
    std::uint64_t sum = entry.segments;
    for (std::size_t at = 0; at != entry.segments * words_per_segment; at += 2) {
        std::uint64_t words = 0;
        std::memcpy(&words, &entry.words[at], sizeof words);
        sum = (sum ^ words) * odd;
        sum ^= sum >> 32;
    }
    return static_cast<std::uint32_t>(sum);
}

} // namespace weftio::nic::soft
