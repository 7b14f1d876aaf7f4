#include "nic/soft/rdma/rdma_entry.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t segment_bytes = 16;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;

/// Decodes an opcode. @return false: it is no opcode of an RDMA queue
bool read_opcode(std::uint32_t opcode, roce::message& out) noexcept
{
    using enum net::roce_operation;
    out.extra = net::roce_extra::none;
    switch (opcode) {
        case WEFTIO_OPCODE_NOP:
        case WEFTIO_OPCODE_DUMP:
        case WEFTIO_OPCODE_UMR: out.operation = none; return true;
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

void read_remote(const weftio_wqe_remote_segment& remote, roce::message& out) noexcept
{
    out.remote_address = weftio_swap64(remote.address_be);
    out.remote_key = weftio_swap32(remote.rkey_be);
}

void read_atomic(const weftio_wqe_atomic_segment& atomic, roce::message& out) noexcept
{
    out.swap_or_add = weftio_swap64(atomic.swap_or_add_be);
    out.compare = weftio_swap64(atomic.compare_be);
}

/// Adds up the lengths of the data segments, and checks the memory that they name.
refusal read_data(const ring_segments& entry, const keys::queue_keys& keys, roce::message& out) noexcept
{
    std::uint64_t bytes = 0;
    const bool scatters = out.wants_result();
    const access needed = scatters ? access::local_write : access::none;
    for (data_segments data(entry, out.first_data); data.more();) {
        local_piece piece;
        if (const refusal reason = data.next(piece); reason != refusal::none)
            return reason;
        if (piece.inlined && scatters)
            return refusal::wrong_segment;
        std::byte* at = nullptr;
        if (const refusal reason = piece.inlined ? refusal::none : find(piece, keys, needed, at);
            reason != refusal::none && reason != refusal::out_of_reach) // copies may reach it: see gather()
            return reason;
        bytes += piece.bytes;
        if (bytes > most_bytes)
            return scatters ? refusal::read_too_long : refusal::message_too_long;
    }
    out.bytes = static_cast<std::uint32_t>(bytes);
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
    if (rest_.bytes != 0) {
        out = std::exchange(rest_, {});
        return refusal::none;
    }
    const std::uint32_t* const words = entry_.at(at_);
    const std::uint32_t count_be = weftio_load_relaxed_u32(words), count = weftio_swap32(count_be);
    if ((count & WEFTIO_INLINE_SEGMENT) == 0) {
        const std::array<std::uint32_t, 4> copy{count_be, weftio_load_relaxed_u32(words + 1),
                                                weftio_load_relaxed_u32(words + 2), weftio_load_relaxed_u32(words + 3)};
        out = piece_of(std::bit_cast<weftio_wqe_data_segment>(copy));
        ++at_;
        return refusal::none;
    }
    const std::uint32_t bytes = count & ~WEFTIO_INLINE_SEGMENT;
    if (bytes > (entry_.count() - at_) * segment_bytes - sizeof count)
        return refusal::wrong_size;
    const std::uint32_t segments =
        (bytes + static_cast<std::uint32_t>(sizeof count) + segment_bytes - 1) / segment_bytes;
    out.inlined = reinterpret_cast<const std::uint8_t*>(words + 1);
    out.bytes = bytes;
    if (const std::uint32_t before_the_end = entry_.in_one_piece(at_); segments > before_the_end) {
        out.bytes = before_the_end * segment_bytes - sizeof count;
        rest_ = {.inlined = reinterpret_cast<const std::uint8_t*>(entry_.at(at_ + before_the_end)),
                 .bytes = bytes - out.bytes};
    }
    at_ += segments;
    return refusal::none;
}

void receive_segments::load() noexcept
{
    more_ = at_ != entry_.count();
    if (!more_)
        return;
    segment_ = entry_.load<weftio_wqe_data_segment>(at_++);
    more_ = weftio_swap32(segment_.lkey_be) != WEFTIO_LKEY_INVALID;
}

refusal receive_segments::next(local_piece& out) noexcept
{
    out = piece_of(segment_);
    load();
    return refusal::none;
}

refusal find(const local_piece& piece, const keys::queue_keys& keys, access needed, std::byte*& at) noexcept
{
    return keys.resolve_for_cpu(piece.key, piece.address, piece.bytes, needed, at);
}

refusal find_staged(const local_piece& piece, const keys::queue_keys& keys, const staged_pair* staged, access needed,
                    keys::located& found) noexcept
{
    const refusal why = keys.resolve(piece.key, piece.address, piece.bytes, needed, found);
    const bool reached = staged != nullptr && staged->reaches(found);
    return why != refusal::none || reached ? why : refusal::out_of_reach;
}

namespace {

/// Whether the service has this operation. That UC has no READs and atomics is checked by the requester.
bool has_operation(rdma_service service, const roce::message& asked) noexcept
{
    return service != rdma_service::datagram || asked.opcode == WEFTIO_OPCODE_NOP ||
           asked.opcode == WEFTIO_OPCODE_DUMP || asked.opcode == WEFTIO_OPCODE_SEND ||
           asked.opcode == WEFTIO_OPCODE_SEND_IMMEDIATE;
}

std::uint8_t first_data_of(rdma_service service, const roce::message& asked, bool atomic) noexcept
{
    constexpr std::uint8_t behind_datagram_segment = 4;
    if (asked.operation == net::roce_operation::send)
        return service == rdma_service::datagram ? behind_datagram_segment : 1;
    return atomic ? 3 : 2;
}

} // namespace

refusal read_message(const entry_ring& ring, std::uint32_t index, std::uint32_t available, rdma_service service,
                     const keys::queue_keys& keys, entry_control& control, roce::message& out) noexcept
{
    using words = std::array<std::uint32_t, entry::words_per_segment>;
    const auto first = ring_segments(ring, index, 1).load<words>(0);
    const refusal read = read_control(ring, index, available, first.data(), control);
    out.blocks = static_cast<std::uint8_t>(control.blocks());
    out.opcode = static_cast<std::uint8_t>(control.opcode);
    if (read != refusal::none)
        return read;
    if (!read_opcode(control.opcode, out))
        return refusal::unknown_opcode;
    if (!has_operation(service, out))
        return refusal::unreliable;
    const std::uint32_t flags = first[2] >> 24;
    out.solicited = (flags & WEFTIO_SOLICITED) != 0;
    out.fence = flags >= WEFTIO_FENCE;
    out.segments = static_cast<std::uint8_t>(control.segments);
    out.immediate_or_key = weftio_swap32(first[3]);
    if (out.is_local())
        return refusal::none;
    const bool atomic = out.wants_result() && out.operation != net::roce_operation::read_request;
    out.first_data = first_data_of(service, out, atomic);
    if (out.segments < out.first_data)
        return refusal::wrong_size;
    const ring_segments entry(ring, index, out.segments);
    if (out.operation != net::roce_operation::send)
        read_remote(entry.load<weftio_wqe_remote_segment>(1), out);
    if (atomic)
        read_atomic(entry.load<weftio_wqe_atomic_segment>(2), out);
    if (const refusal reason = read_data(entry, keys, out); reason != refusal::none)
        return reason;
    return atomic && out.bytes != sizeof(std::uint64_t) ? refusal::wrong_atomic : refusal::none;
}

namespace {

constexpr std::uint32_t bind_segments = 12, invalidate_segments = 8;
constexpr std::uint64_t any_rights = WEFTIO_UMR_MASK_RIGHTS; // of 64 bits, as its complement must be

/// The first `count` segments of a part of an entry, which may continue at the start of the ring. Those behind them
/// have no fields, and are not read.
template <class Part, std::uint32_t count>
Part load_part(const ring_segments& entry, std::uint32_t first) noexcept
{
    using words = std::array<std::uint32_t, entry::words_per_segment>;
    Part part{};
    for (std::uint32_t each = 0; each != count; ++each) {
        const auto copy = entry.load<words>(first + each);
        std::memcpy(reinterpret_cast<std::byte*>(&part) + each * sizeof copy, copy.data(), sizeof copy);
    }
    return part;
}

access rights_of(std::uint8_t mkey, std::uint64_t mask) noexcept
{
    const auto given = [&](unsigned bit, std::uint64_t changed, access right) {
        return (mkey & bit) != 0 && (mask & changed) != 0 ? right : access::none;
    };
    return given(WEFTIO_MKEY_REMOTE_WRITE, WEFTIO_UMR_MASK_REMOTE_WRITE, access::remote_write) |
           given(WEFTIO_MKEY_REMOTE_READ, WEFTIO_UMR_MASK_REMOTE_READ, access::remote_read) |
           given(WEFTIO_MKEY_ATOMIC, WEFTIO_UMR_MASK_ATOMIC, access::remote_atomic);
}

/// Some versions of libmlx5 write the third block of a bind behind the ring when it should be at the ring's start.
/// Reads it there; if it cannot be read, `memory` stays as it is.
void read_behind(const entry_ring& ring, std::uint32_t index, weftio_wqe_data_segment& memory) noexcept
{
    constexpr std::uint32_t words_per_block = 16, blocks_before = 2;
    weftio_wqe_data_segment behind{};
    if ((index & (ring.depth - 1)) == ring.depth - blocks_before &&
        core::guarded_copy(&behind, ring.words + std::size_t{ring.depth} * words_per_block, sizeof behind))
        memory = behind;
}

/// An invalidation, or what frees a window of type 1.
refusal read_without_memory(const weftio_wqe_umr_segment& umr, const weftio_wqe_mkey_segment& mkey,
                            window_entry& out) noexcept
{
    const std::uint64_t mask = weftio_swap64(umr.mkey_mask_be);
    out.invalidates = umr.flags == WEFTIO_UMR_INVALIDATE;
    if (out.invalidates ? mask != WEFTIO_UMR_MASK_INVALIDATE
                        : umr.flags != WEFTIO_UMR_BIND_TYPE_1 || (mask & ~any_rights) != WEFTIO_UMR_MASK_UNBIND)
        return refusal::wrong_umr_mask;
    out.bind.type = window_type::type_1;
    return umr.memory_octowords_be == 0 && (mkey.free & WEFTIO_MKEY_FREE) != 0 ? refusal::none
                                                                               : refusal::wrong_umr_field;
}

} // namespace

refusal read_window_entry(const entry_ring& ring, std::uint32_t index, std::uint32_t segments, std::uint32_t key,
                          window_entry& out) noexcept
{
    constexpr std::uint16_t octowords = 4;
    if (segments != bind_segments && segments != invalidate_segments)
        return refusal::wrong_size;
    const ring_segments entry(ring, index, segments);
    const auto umr = load_part<weftio_wqe_umr_segment, 1>(entry, 1);
    const auto mkey = load_part<weftio_wqe_mkey_segment, 2>(entry, 4);
    const std::uint32_t queue_variant = weftio_swap32(mkey.queue_variant_be);
    out.bind.window = key;
    out.bind.variant = static_cast<std::uint8_t>(queue_variant);
    if (segments == invalidate_segments)
        return read_without_memory(umr, mkey, out);
    const bool type_2 = umr.flags == WEFTIO_UMR_BIND_TYPE_2;
    const std::uint64_t mask = weftio_swap64(umr.mkey_mask_be);
    if ((!type_2 && umr.flags != WEFTIO_UMR_BIND_TYPE_1) ||
        (mask & ~any_rights) != (type_2 ? WEFTIO_UMR_MASK_BIND_TYPE_2 : WEFTIO_UMR_MASK_BIND_TYPE_1))
        return refusal::wrong_umr_mask;
    auto memory = entry.load<weftio_wqe_data_segment>(8);
    if (!out.bind.strict && memory.address_be != mkey.start_be)
        read_behind(ring, index, memory);
    out.bind.type = type_2 ? window_type::type_2 : window_type::type_1;
    out.bind.region = weftio_swap32(memory.lkey_be);
    out.bind.address = weftio_swap64(mkey.start_be);
    out.bind.bytes = weftio_swap64(mkey.bytes_be);
    out.bind.rights = rights_of(mkey.rights, mask);
    const bool consistent = weftio_swap16(umr.memory_octowords_be) == octowords && umr.translation_offset_be == 0 &&
                            (mkey.free & WEFTIO_MKEY_FREE) == 0 && memory.address_be == mkey.start_be &&
                            weftio_swap32(memory.byte_count_be) == out.bind.bytes && out.bind.bytes <= most_bytes &&
                            queue_variant >> 8 == (type_2 ? ring.queue : WEFTIO_MKEY_ANY_QUEUE);
    return consistent ? refusal::none : refusal::wrong_umr_field;
}

} // namespace weftio::nic::soft
