#include "nic/soft/dma/copy_work.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "core/guarded.hpp"

namespace weftio::nic::soft {

namespace {

constexpr std::uint32_t dma_copy = WEFTIO_OPCODE_MMO | WEFTIO_MMO_DMA << 8;
constexpr std::uint32_t segments_of_a_copy = 4;
constexpr std::size_t source = 2, destination = 3; ///< segment numbers

weftio_wqe_data_segment pointer_at(const entry& entry, std::size_t segment) noexcept
{
    weftio_wqe_data_segment result;
    std::memcpy(&result, &entry.words[segment * 4], sizeof result);
    return result;
}

std::uint64_t bytes_of(const weftio_wqe_data_segment& pointer) noexcept
{
    const std::uint32_t count = weftio_swap32(pointer.byte_count_be);
    return count == 0 ? std::uint64_t{1} << 31 : count;
}

/// The bytes of a pointer segment.
struct copy_end {
    std::byte* bytes = nullptr;
    const devices::device_backend* device = nullptr; ///< device whose copy engine accesses them; nullptr: the CPU does
    keys::held_key by{};
};

/// Finds the memory of a pointer segment, and checks that the engine may read or write it.
refusal find(const weftio_wqe_data_segment& pointer, const keys::queue_keys& keys, access needed,
             copy_end& out) noexcept
{
    keys::located found;
    if (const refusal why = keys.resolve(weftio_swap32(pointer.lkey_be), weftio_swap64(pointer.address_be),
                                         bytes_of(pointer), needed, found);
        why != refusal::none)
        return why;
    out.bytes = found.cpu ? found.cpu : reinterpret_cast<std::byte*>(found.device_address);
    out.device = found.cpu ? nullptr : found.device;
    out.by = found.by;
    return refusal::none;
}

/// Repeats the four bytes of the pattern. @param at  bytes of the fill that are already done
void fill(std::byte* to, std::uint64_t bytes, std::uint32_t pattern, std::uint64_t at) noexcept
{
    constexpr std::size_t block_bytes = 256;
    std::byte block[block_bytes];
    for (std::size_t byte = 0; byte < block_bytes; ++byte)
        block[byte] = reinterpret_cast<const std::byte*>(&pattern)[(at + byte) % 4];
    for (; bytes > block_bytes; to += block_bytes, bytes -= block_bytes)
        std::memcpy(to, block, block_bytes);
    std::memcpy(to, block, bytes);
}

/// Copies or fills bytes from byte `at` on with the CPU. Returns false when memory has gone.
bool copy_part(const copy_request& request, std::uint64_t at, std::uint64_t bytes) noexcept
{
    std::byte* const to = request.to + at;
    if (request.from)
        return core::guarded_copy(to, request.from + at, bytes); // source and destination may overlap
    return core::guarded([&](core::touched& there) {
        there.only(to, bytes);
        fill(to, bytes, request.pattern, at);
    });
}

} // namespace

refusal read_copy(const entry& entry, const keys::queue_keys& keys, const copy_streams& streams,
                  copy_request& out) noexcept
{
    if (entry.segments != segments_of_a_copy)
        return refusal::wrong_size;
    const weftio_wqe_data_segment to = pointer_at(entry, destination), from = pointer_at(entry, source);
    const std::uint32_t count = weftio_swap32(from.byte_count_be);
    if (weftio_swap32(to.byte_count_be) & WEFTIO_INLINE_SEGMENT)
        return refusal::wrong_segment;
    copy_end there, here;
    if (refusal reason = find(to, keys, access::local_write, there); reason != refusal::none)
        return reason;
    const bool fills = count == (WEFTIO_INLINE_SEGMENT | 4u);
    if (!fills) {
        if (count & WEFTIO_INLINE_SEGMENT)
            return refusal::wrong_segment;
        if (bytes_of(from) != bytes_of(to))
            return refusal::unequal_copy;
        if (refusal reason = find(from, keys, access::none, here); reason != refusal::none)
            return reason;
    }
    const devices::device_backend* device = there.device ? there.device : here.device;
    // Assigned one by one: an aggregate is built on the stack by small stores and copied by wide loads, which wait for
    // these stores. That cost 15 ns a copy.
    out.bytes = bytes_of(to);
    out.to = there.bytes;
    out.from = here.bytes;
    out.pattern = from.lkey_be; // for a fill: the four bytes after the count
    out.stream = device ? streams.find(device) : nullptr;
    out.within = there.device && (fills || there.device == here.device);
    out.to_by = there.by;
    out.from_by = here.by;
    return refusal::none;
}

unsigned copy_work::turn(std::uint32_t most)
{
    read_doorbell_record();
    check_stream();
    const std::uint32_t before = next_;
    const std::uint64_t done_before = under_way_ ? done_ : 0;
    if (failed() && next_ != submitted_)
        count_flushed(flush(next_));
    budget left{.bytes = most * bytes_of_an_entry, .bytes_by_stream = most * bytes_by_stream};
    for (; most != 0 && next_ != submitted_; --most)
        if (!execute(left))
            break;
    const unsigned moved = next_ - before + (under_way_ && done_ != done_before);
    if (completed_ != handed_ || has_failure_to_publish())
        complete();
    return moved;
}

/// Executes the entry at next_ or a part of it. Returns whether the next entry may follow.
bool copy_work::execute(budget& left)
{
    const bool begun_before = under_way_;
    if (!begun_before && !begin())
        return false;
    if (!under_way_)
        return true; // nothing to copy
    if ((begun_before && !still_may()) || !has_way(left))
        return false;
    carry_on(left);
    return !under_way_;
}

/// Starts the entry at next_. Returns whether it could be executed.
bool copy_work::begin()
{
    refusal reason = fetch_any(ring_.entries, next_, submitted_ - next_, entry_);
    if (reason == refusal::none && entry_.opcode == WEFTIO_OPCODE_NOP) {
        finish(false);
        return true;
    }
    if (reason == refusal::none)
        reason = entry_.opcode == dma_copy ? read_copy(entry_, keys_, streams_, request_) : refusal::unknown_opcode;
    if (reason != refusal::none) {
        fail(next_, reason);
        return false;
    }
    done_ = 0;
    under_way_ = true;
    return true;
}

/// Whether the memory of the entry in progress is still registered; if not, the entry fails.
bool copy_work::still_may()
{
    if (keys_.still(request_.to_by) && (!request_.from || keys_.still(request_.from_by)))
        return true;
    const refusal reason = read_copy(entry_, keys_, streams_, request_);
    if (reason == refusal::none)
        return true;
    const std::uint32_t index = next_;
    fail(index, reason);
    let_go_of_part(index);
    return false;
}

/// Whether the entry in progress can continue now: earlier copies elsewhere are complete, and the copy engine accepts
/// more.
bool copy_work::has_way(const budget& left)
{
    if (request_.stream != stream_) {
        if (completed_ != handed_)
            complete();
        if (completed_ != handed_)
            return false;
        stream_ = request_.stream;
    }
    return stream_ ? left.bytes_by_stream != 0 && !stream_->full() : left.bytes != 0;
}

void copy_work::carry_on(budget& left)
{
    std::uint64_t& budget = stream_ ? left.bytes_by_stream : left.bytes;
    const std::uint64_t per_byte = request_.within ? bytes_within_per_byte : 1;
    const std::uint64_t bytes = std::min(budget * per_byte, request_.bytes - done_);
    std::byte* const to = request_.to + done_;
    if (stream_ && request_.from)
        stream_->copy(to, request_.from + done_, bytes);
    else if (stream_)
        stream_->fill(to, std::rotr(request_.pattern, static_cast<int>(done_ % 4 * 8)), bytes);
    else if (!copy_part(request_, done_, bytes))
        return lose_memory();
    if (stream_)
        last_batch_ = stream_->batch();
    budget -= (bytes + per_byte - 1) / per_byte;
    done_ += bytes;
    if (done_ == request_.bytes)
        finish(true);
}

/// The memory of the entry in progress has gone.
void copy_work::lose_memory()
{
    const std::uint32_t index = next_;
    fail(index, refusal::memory_gone);
    let_go_of_part(index);
}

void copy_work::finish(bool copy)
{
    under_way_ = false;
    batch_of(next_) = copy && stream_ ? last_batch_ : 0;
    executed(next_) = {.blocks = static_cast<std::uint8_t>(entry_.blocks()),
                       .event = entry_.event,
                       .counts = copy,
                       .bytes = copy ? static_cast<std::uint32_t>(request_.bytes) : 0};
    handed_ = next_ += entry_.blocks();
    enqueued.add(1);
    if (!copy)
        skipped.add(1);
}

/// The entry at `index`, which was in progress, has ended without finishing. It completes when no copy engine works on
/// it any more.
void copy_work::let_go_of_part(std::uint32_t index) noexcept
{
    if (std::exchange(under_way_, false) && stream_ && done_ != 0)
        batch_of(index) = last_batch_;
}

bool copy_work::returned(std::uint32_t index) const noexcept
{
    const std::uint64_t batch = batches_[index & (ring_.entries.depth - 1)];
    return batch == 0 || stream_->completed(batch);
}

void copy_work::check_stream()
{
    if (!stream_ || !stream_->failed())
        return;
    complete();
    if (completed_ != handed_ || (under_way_ && done_ != 0))
        fail_stream();
    stream_ = nullptr;
}

/// The copy engine has failed. The first entry that it has not finished fails, and the others are flushed.
void copy_work::fail_stream()
{
    refusal reason = refusal::device_failed;
    for (std::uint32_t index = completed_; index != handed_; index += executed(index).blocks) {
        batch_of(index) = 0;
        if (!executed(index).counts || executed(index).reason != refusal::none)
            continue;
        executed(index).reason = std::exchange(reason, refusal::flushed);
        if (executed(index).reason == refusal::flushed) {
            flushed.add(1);
            continue;
        }
        failed_.store(true, std::memory_order_relaxed);
        failed_entries.add(1);
        events_.put({.position = index, .reason = refusal::device_failed, .time_ns = core::utc_now_ns()});
    }
    if (reason == refusal::device_failed && under_way_ && done_ != 0)
        fail(next_, reason);
    else
        count_flushed(flush(next_));
    under_way_ = false;
}

void copy_work::count_done(std::uint64_t entries, std::uint64_t bytes)
{
    copied.add(entries);
    copied_bytes.add(bytes);
}

void copy_work::stop()
{
    read_doorbell_record();
    check_stream();
    failed_.store(true, std::memory_order_relaxed);
    const std::uint32_t index = next_;
    count_flushed(flush(index));
    let_go_of_part(index);
    complete();
}

void copy_work::restart(const tx_ring& ring) noexcept
{
    begin_again(ring, 0);
    std::ranges::fill(batches_, 0);
    stream_ = nullptr;
}

} // namespace weftio::nic::soft
