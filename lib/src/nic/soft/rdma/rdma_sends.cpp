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
    out.refused = read_message(ring_.entries, index, submitted_ - index, service_, keys_, control, out);
    executed(index) = {.blocks = out.blocks,
                       .event = control.event,
                       .counts = out.opcode != WEFTIO_OPCODE_NOP,
                       .asked = control.asked,
                       .opcode = out.opcode};
    ended_[slot(index)] = 0;
    handed_ = next_ = index + out.blocks;
    enqueued.add(1);
    out.more = more_behind(next_);
    return true;
}

/// Whether an entry is committed at `index` that sends packets.
bool rdma_sends::more_behind(std::uint32_t index) const noexcept
{
    if (index == submitted_)
        return false;
    const std::uint32_t opcode =
        weftio_swap32(weftio_load_relaxed_u32(ring_segments(ring_.entries, index, 1).at(0))) & 0xff;
    return opcode != WEFTIO_OPCODE_NOP && opcode != WEFTIO_OPCODE_UMR && opcode != WEFTIO_OPCODE_DUMP;
}

data_segments rdma_sends::data_of(const roce::message& of) const noexcept
{
    return {ring_segments(ring_.entries, of.entry, of.segments), of.first_data};
}

refusal rdma_sends::gather(const roce::message& of, std::uint32_t offset, std::uint32_t bytes, roce::pieces& found)
{
    const refusal why = for_each_piece(data_of(of), {offset, bytes}, refusal::changed, [&](const local_piece& piece) {
        std::byte* at = nullptr;
        if (!piece.inlined)
            if (const refusal why = find(piece, keys_, access::none, at); why != refusal::none)
                return why;
        found.add({piece.inlined ? piece.inlined : reinterpret_cast<const std::uint8_t*>(at), piece.bytes});
        return refusal::none;
    });
    if (why != refusal::out_of_reach) [[likely]]
        return why;
    return gather_staged(of, {offset, bytes}, found);
}

/// For bytes of which the CPU cannot access some.
[[gnu::cold]] refusal rdma_sends::gather_staged(const roce::message& of, const byte_window& window, roce::pieces& found)
{
    found.count = 0;
    return for_each_piece(data_of(of), window, refusal::changed, [&](const local_piece& piece) {
        std::byte* at = nullptr;
        keys::located there;
        roce::piece bytes{piece.inlined, piece.bytes};
        refusal why = piece.inlined ? refusal::none : find(piece, keys_, access::none, at);
        if (at != nullptr)
            bytes = {reinterpret_cast<const std::uint8_t*>(at), piece.bytes};
        if (why == refusal::out_of_reach)
            why = find_staged(piece, keys_, &staged_, access::none, there);
        if (why == refusal::none && there.device != nullptr)
            why = staged_.read(there, part_of(of, window, piece), bytes);
        found.add(bytes);
        return why;
    });
}

/// How many bytes of the message continue those of a packet, in the same memory: only if they are all of the packet.
roce::wanted_bytes rdma_sends::part_of(const roce::message& of, const byte_window& window,
                                       const local_piece& piece) const noexcept
{
    const auto count = static_cast<std::uint32_t>(piece.bytes);
    roce::wanted_bytes part{.count = count, .ahead = 0, .message = of.first_psn};
    if (piece.bytes != window.bytes || window.offset + window.bytes == of.bytes)
        return part;
    const std::uint64_t most = std::min<std::uint64_t>(of.bytes - window.offset, staging_blocks::most_bytes);
    for_each_piece(data_of(of), {window.offset, most}, refusal::changed, [&](const local_piece& whole) {
        keys::located there;
        if (whole.bytes > count && find_staged(whole, keys_, &staged_, access::none, there) == refusal::none)
            part.ahead = static_cast<std::uint32_t>(whole.bytes) - count;
        return refusal::changed; // the first piece only
    });
    return part;
}

refusal rdma_sends::scatter(const roce::message& of, std::uint32_t offset, std::span<const std::uint8_t> bytes)
{
    return soft::scatter(data_of(of), keys_, &staged_, offset, bytes, refusal::changed);
}

/// Of type 2.
void rdma_sends::count_window(bool freed) noexcept
{
    if (windows_.held != nullptr)
        freed ? windows_.held->remove() : windows_.held->add();
}

/// A DUMP. Payload lies where it belongs when its completion is published, so that there is nothing to push ahead, and
/// a read of the first and the last byte shows whether the memory is there. Memory that the CPU cannot access is not
/// read: the entry ends behind all copies that are under way.
[[gnu::cold]] refusal rdma_sends::read_and_drop(const roce::message& of)
{
    data_segments data = data_of(of);
    local_piece piece;
    if (of.segments != of.first_data + 1u)
        return refusal::wrong_size;
    if (const refusal why = data.next(piece); why != refusal::none)
        return why;
    if (piece.inlined)
        return refusal::wrong_segment;
    std::byte* at = nullptr;
    refusal why = find(piece, keys_, access::none, at);
    if (why == refusal::out_of_reach) {
        keys::located there;
        why = find_staged(piece, keys_, &staged_, access::none, there);
        if (why == refusal::none)
            staged_.join_all();
        return why;
    }
    std::byte dropped{};
    if (why == refusal::none && (!core::guarded_copy(&dropped, at, sizeof dropped) ||
                                 !core::guarded_copy(&dropped, at + piece.bytes - 1, sizeof dropped)))
        return refusal::memory_gone;
    return why;
}

/// A NOP, a DUMP, a bind or an invalidation. The entry is decoded here, so that what is checked is what is done.
refusal rdma_sends::execute(const roce::message& of)
{
    if (of.opcode == WEFTIO_OPCODE_DUMP)
        return read_and_drop(of);
    if (of.opcode != WEFTIO_OPCODE_UMR)
        return refusal::none;
    window_entry asked;
    asked.bind.strict = windows_.strict;
    const refusal why = read_window_entry(ring_.entries, of.entry, of.segments, of.immediate_or_key, asked);
    if (why != refusal::none)
        return why;
    const refusal done =
        asked.invalidates ? nic_.invalidate(asked.bind.window, windows_.as) : nic_.bind(asked.bind, windows_.as);
    if (done != refusal::none)
        return done;
    staged_.join_pending(); // of queue pairs whose peers have used the window
    if (asked.invalidates || asked.bind.type == window_type::type_2)
        count_window(asked.invalidates);
    else if (!rounds_.has_one_engine())
        round_ = rounds_.begin();
    return refusal::none;
}

/// A window of type 2 is used by this engine only; one of type 1 by all.
bool rdma_sends::in_force()
{
    if (round_ != 0 && rounds_.has_passed(round_))
        round_ = 0;
    return round_ == 0;
}

/// The memory that `reason` is about: the peer's, or the first local piece that is refused for this reason.
named_bytes rdma_sends::refused_memory(const roce::message& failed, refusal reason) const noexcept
{
    if (reason == refusal::remote_access || reason == refusal::remote_invalid) {
        if (failed.operation == net::roce_operation::send)
            return {};
        return {.key = failed.remote_key, .address = failed.remote_address, .bytes = failed.bytes};
    }
    if (failed.opcode == WEFTIO_OPCODE_UMR)
        return {};
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
    if (result == refusal::none) {
        entry.bytes = done.bytes;
        if (staged_.used() && wait_for_copies(done.entry)) [[unlikely]]
            return;
        mark_done(done.entry);
        skipped.add(!entry.counts);
        return;
    }
    mark_done(done.entry);
    entry.reason = result;
    entry.quiet = !windows_.strict && done.opcode == WEFTIO_OPCODE_UMR; // as a ConnectX
    if (result == refusal::flushed)
        return flushed.add(1);
    break_off();
    failed_entries.add(1);
    events_.put({.position = done.entry,
                 .reason = result,
                 .time_ns = core::utc_now_ns(),
                 .memory = refused_memory(done, result)});
}

/// @return false: no copy is under way
[[gnu::cold]] bool rdma_sends::wait_for_copies(std::uint32_t index)
{
    if (staged_.settled() && waiting_.empty())
        return false;
    waiting_.push_back({index, staged_.ticket()});
    return true;
}

void rdma_sends::settle()
{
    auto each = waiting_.begin();
    for (; each != waiting_.end() && staged_.is_over(each->ticket); ++each) {
        mark_done(each->index);
        if (const refusal why = staged_.failure_of(each->ticket); why != refusal::none)
            fail_settled(*each, why);
        else
            skipped.add(!executed(each->index).counts);
    }
    waiting_.erase(waiting_.begin(), each);
}

/// The first one is the reason for the others.
void rdma_sends::fail_settled(const waiting_entry& one, refusal why)
{
    executed_entry& entry = executed(one.index);
    if (failed()) {
        entry.reason = refusal::flushed;
        return flushed.add(1);
    }
    entry.reason = why;
    break_off();
    failed_entries.add(1);
    events_.put({.position = one.index, .reason = why, .time_ns = core::utc_now_ns()});
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
    waiting_.clear();
    std::ranges::fill(ended_, std::uint8_t{0});
}

} // namespace weftio::nic::soft
