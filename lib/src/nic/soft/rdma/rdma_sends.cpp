#include "nic/soft/rdma/rdma_sends.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.hpp"

namespace weftio::nic::soft {

std::string words_of(const send_event& failure)
{
    if (failure.memory.bytes == 0)
        return explain(failure.reason);
    return fmt::format("{} bytes at {:#x} with key {:#x}: {}", failure.memory.bytes, failure.memory.address,
                       failure.memory.key, explain(failure.reason));
}

/// RDMA step 4: an entry is read when its message begins.
bool rdma_sends::read(std::uint32_t index, roce::message& out)
{
    if (index == submitted_)
        return false;
    entry_control control;
    out.refused = read_message(ring_.entries, index, submitted_ - index, keys_, control, out);
    executed(index) = {.blocks = out.blocks,
                       .event = control.event,
                       .counts = !out.is_local(),
                       .asked = control.asked,
                       .opcode = out.opcode};
    ended_[slot(index)] = 0;
    handed_ = next_ = index + out.blocks;
    enqueued.add(1);
    out.more = more_behind(next_);
    return true;
}

/// Whether an entry is committed at `index` that is not a NOP.
bool rdma_sends::more_behind(std::uint32_t index) const noexcept
{
    if (index == submitted_)
        return false;
    return (weftio_swap32(weftio_load_relaxed_u32(ring_segments(ring_.entries, index, 1).at(0))) & 0xff) !=
           WEFTIO_OPCODE_NOP;
}

data_segments rdma_sends::data_of(const roce::message& of) const noexcept
{
    return {ring_segments(ring_.entries, of.entry, of.segments), of.first_data};
}

refusal rdma_sends::gather(const roce::message& of, std::uint32_t offset, std::uint32_t bytes, roce::pieces& found)
{
    return for_each_piece(data_of(of), {offset, bytes}, refusal::changed, [&](const local_piece& piece) {
        std::byte* at = nullptr;
        if (!piece.inlined)
            if (const refusal why = find(piece, keys_, access::none, at); why != refusal::none)
                return why;
        found.add({piece.inlined ? piece.inlined : reinterpret_cast<const std::uint8_t*>(at), piece.bytes});
        return refusal::none;
    });
}

refusal rdma_sends::scatter(const roce::message& of, std::uint32_t offset, std::span<const std::uint8_t> bytes)
{
    return soft::scatter(data_of(of), keys_, offset, bytes, refusal::changed);
}

/// The only local operation is a NOP.
refusal rdma_sends::execute(const roce::message&)
{
    return refusal::none;
}

/// The memory that `reason` is about: the peer's, or the first local piece that is refused for this reason.
named_bytes rdma_sends::refused_memory(const roce::message& failed, refusal reason) const noexcept
{
    if (reason == refusal::remote_access || reason == refusal::remote_invalid) {
        if (failed.operation == net::roce_operation::send)
            return {};
        return {.key = failed.remote_key, .address = failed.remote_address, .bytes = failed.bytes};
    }
    const access needed = failed.wants_result() ? access::local_write : access::none;
    for (data_segments data = data_of(failed); data.more();) {
        local_piece piece;
        std::byte* at = nullptr;
        if (data.next(piece) != refusal::none)
            return {};
        if (!piece.inlined && find(piece, keys_, needed, at) == reason)
            return {.key = piece.key, .address = piece.address, .bytes = piece.bytes};
    }
    return {};
}

/// RDMA step 15: entries end in order; work_ring publishes them.
void rdma_sends::end(const roce::message& done, refusal result)
{
    executed_entry& entry = executed(done.entry);
    mark_done(done.entry);
    if (result == refusal::none) {
        entry.bytes = done.bytes;
        skipped.add(!entry.counts);
        return;
    }
    entry.reason = result;
    if (result == refusal::flushed)
        return flushed.add(1);
    break_off();
    failed_entries.add(1);
    events_.put({.position = done.entry,
                 .reason = result,
                 .time_ns = core::utc_now_ns(),
                 .memory = refused_memory(done, result)});
}

void rdma_sends::count_done(std::uint64_t entries, std::uint64_t bytes)
{
    done.add(entries);
    done_bytes.add(bytes);
}

void rdma_sends::flush_unread()
{
    break_off();
    count_flushed(flush(next_));
}

void rdma_sends::begin_again_at_zero(const tx_ring& ring) noexcept
{
    begin_again(ring, 0);
    std::ranges::fill(ended_, std::uint8_t{0});
}

} // namespace weftio::nic::soft
