#include "nic/soft/rdma/rdma_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/clock.hpp"
#include "core/guarded.hpp"

namespace weftio::nic::soft {

std::string words_of(const send_event& failure)
{
    if (failure.memory.bytes == 0)
        return explain(failure.reason);
    return fmt::format("{} bytes at {:#x} with key {:#x}: {}", failure.memory.bytes, failure.memory.address,
                       failure.memory.key, explain(failure.reason));
}

refusal rdma_work::fetch_at(std::uint32_t index, entry& out) const noexcept
{
    return fetch_any(ring_.entries, index, submitted_ - index, out);
}

/// Send step 4: an entry is read when its message begins, and again for each retry.
roce::entry_state rdma_work::read(std::uint32_t index, roce::send_request& request, refusal& refused)
{
    if (index == submitted_)
        return roce::entry_state::none;
    copies_.owner = this;
    refusal reason = fetch_at(index, copies_.read);
    request = {.blocks = static_cast<std::uint8_t>(copies_.read.blocks()), .fingerprint = fingerprint_of(copies_.read)};
    rdma_entry decoded{request};
    if (reason == refusal::none)
        reason = read_rdma(copies_.read, keys_, decoded);
    copies_.first_data = decoded.first_data;
    if (index == next_)
        begin(index, request);
    request.more = more_behind(index + request.blocks);
    refused = reason;
    return roce::entry_state::ready;
}

/// Send step 4: the requester reads the entry for the first time.
void rdma_work::begin(std::uint32_t index, const roce::send_request& request)
{
    executed(index) = {.blocks = request.blocks,
                       .event = copies_.read.event,
                       .counts = request.operation != net::roce_operation::none,
                       .asked = copies_.read.asked,
                       .opcode = static_cast<std::uint8_t>(copies_.read.opcode)};
    ended_[slot(index)] = 0;
    handed_ = next_ = index + request.blocks;
    enqueued.add(1);
}

/// Whether an entry is committed at `index` that is not a NOP.
bool rdma_work::more_behind(std::uint32_t index) const noexcept
{
    constexpr std::uint32_t words_per_block = 16;
    if (index == submitted_)
        return false;
    const std::uint32_t* const block = ring_.entries.words + std::size_t{slot(index)} * words_per_block;
    return (weftio_swap32(weftio_load_relaxed_u32(block)) & 0xff) != WEFTIO_OPCODE_NOP;
}

/// Calls `what` for each piece in the window until one is refused. Returns the reason, or refusal::none.
template <class Do>
refusal rdma_work::for_each_piece(const entry& from, std::uint32_t first, byte_window window, Do&& what) const
{
    for (data_segments data(from, first); data.more() && !window.empty();) {
        local_piece piece;
        if (const refusal reason = data.next(piece); reason != refusal::none)
            return reason;
        if (!window.cut(piece))
            continue;
        if (const refusal reason = what(piece); reason != refusal::none)
            return reason;
    }
    return window.empty() ? refusal::none : refusal::wrong_size;
}

refusal rdma_work::gather(std::uint32_t, std::uint32_t offset, std::uint32_t bytes, roce::pieces& found)
{
    return for_each_piece(copies_.read, copies_.first_data, {offset, bytes}, [&](const local_piece& piece) {
        std::byte* at = nullptr;
        if (!piece.inlined)
            if (const refusal why = find(piece, keys_, access::none, at); why != refusal::none)
                return why;
        found.add({piece.inlined ? piece.inlined : reinterpret_cast<const std::uint8_t*>(at), piece.bytes});
        return refusal::none;
    });
}

/// read_rdma() checks all pieces before a byte is written; memory may still go away at any time.
refusal rdma_work::deliver(std::uint32_t index, std::uint32_t fingerprint, std::uint32_t offset,
                           std::span<const std::uint8_t> bytes)
{
    roce::send_request request;
    rdma_entry decoded{request};
    refusal reason = fetch_at(index, copies_.answered);
    if (reason != refusal::none || fingerprint_of(copies_.answered) != fingerprint)
        return refusal::changed;
    reason = read_rdma(copies_.answered, keys_, decoded);
    if (reason != refusal::none)
        return reason;
    const std::uint8_t* from = bytes.data();
    return for_each_piece(copies_.answered, decoded.first_data, {offset, bytes.size()}, [&](const local_piece& piece) {
        std::byte* to = nullptr;
        if (const refusal why = find(piece, keys_, access::local_write, to); why != refusal::none)
            return why;
        if (!core::guarded_copy(to, from, piece.bytes))
            return refusal::memory_gone;
        from += piece.bytes;
        return refusal::none;
    });
}

/// The memory that `reason` is about: the peer's, or the first local piece that is refused for this reason.
named_bytes rdma_work::refused_memory(std::uint32_t index, refusal reason) const noexcept
{
    entry failed;
    roce::send_request request;
    rdma_entry decoded{request};
    if (fetch_at(index, failed) != refusal::none)
        return {};
    const refusal found = read_rdma(failed, keys_, decoded);
    const bool by_peer = reason == refusal::remote_access || reason == refusal::remote_invalid;
    if (by_peer && request.operation == net::roce_operation::send)
        return {};
    if (by_peer)
        return {.key = request.remote_key, .address = request.remote_address, .bytes = request.bytes};
    if (found != reason)
        return {};
    const access needed = decoded.scatters() ? access::local_write : access::none;
    for (data_segments data(failed, decoded.first_data); data.more();) {
        local_piece piece;
        std::byte* at = nullptr;
        if (data.next(piece) != refusal::none)
            return {};
        if (!piece.inlined && find(piece, keys_, needed, at) == reason)
            return {.key = piece.key, .address = piece.address, .bytes = piece.bytes};
    }
    return {};
}

/// Send step 6: entries end in order; work_queue publishes them.
void rdma_work::end(std::uint32_t index, refusal result, std::uint32_t bytes)
{
    executed_entry& entry = executed(index);
    mark_done(index);
    if (result == refusal::none) {
        entry.bytes = bytes;
        skipped.add(!entry.counts);
        return;
    }
    entry.reason = result;
    if (result == refusal::flushed)
        return flushed.add(1);
    failed_.store(true, std::memory_order_relaxed);
    failed_entries.add(1);
    events_.put(
        {.position = index, .reason = result, .time_ns = core::utc_now_ns(), .memory = refused_memory(index, result)});
}

void rdma_work::count_done(std::uint64_t entries, std::uint64_t bytes)
{
    done.add(entries);
    done_bytes.add(bytes);
}

void rdma_work::end_work()
{
    failed_.store(true, std::memory_order_relaxed);
    count_flushed(flush(next_));
}

void rdma_work::begin_again_at_zero(const tx_ring& ring) noexcept
{
    begin_again(ring, 0);
    std::ranges::fill(ended_, std::uint8_t{0});
}

} // namespace weftio::nic::soft
