#include "nic/soft/dma/copy_work.hpp"

#include <algorithm>
#include <cstring>

namespace weftio::nic {

namespace {

constexpr std::uint32_t dma_copy = WEFTIO_OPCODE_MMO | WEFTIO_MMO_DMA << 8;
constexpr std::uint32_t segments_of_a_copy = 4;
constexpr std::size_t source = 2, destination = 3; ///< segments

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

/// Finds the bytes of a pointer segment, which the engine is to read or to write.
refusal find(const weftio_wqe_data_segment& pointer, const queue_keys& keys, access needed, std::byte*& bytes) noexcept
{
    const key_entry* region = keys.find(weftio_swap32(pointer.lkey_be));
    if (!region)
        return refusal::unknown_key;
    if (!keys.may_use(*region))
        return refusal::other_domain;
    if ((region->rights & needed) != needed)
        return refusal::no_right;
    bytes = region->at(weftio_swap64(pointer.address_be), bytes_of(pointer));
    return bytes ? refusal::none : refusal::outside_region;
}

/// Four bytes again and again. @param at  how many have been filled before
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

} // namespace

refusal read_copy(const entry& entry, const queue_keys& keys, copy_request& out) noexcept
{
    if (entry.segments != segments_of_a_copy)
        return refusal::wrong_size;
    const weftio_wqe_data_segment to = pointer_at(entry, destination), from = pointer_at(entry, source);
    const std::uint32_t count = weftio_swap32(from.byte_count_be);
    if (weftio_swap32(to.byte_count_be) & WEFTIO_INLINE_SEGMENT)
        return refusal::wrong_segment;
    if (refusal reason = find(to, keys, access::local_write, out.to); reason != refusal::none)
        return reason;
    out.bytes = bytes_of(to);
    out.from = nullptr;
    if (count == (WEFTIO_INLINE_SEGMENT | 4u)) {
        out.pattern = from.lkey_be; // the four bytes behind the count
        return refusal::none;
    }
    if (count & WEFTIO_INLINE_SEGMENT)
        return refusal::wrong_segment;
    if (bytes_of(from) != out.bytes)
        return refusal::wrong_size;
    std::byte* bytes = nullptr;
    const refusal reason = find(from, keys, access::none, bytes);
    out.from = bytes;
    return reason;
}

unsigned copy_work::turn(std::uint32_t most)
{
    look();
    const std::uint32_t before = next_;
    std::uint64_t budget = std::uint64_t{most} * bytes_of_an_entry;
    if (failed_ && next_ != submitted_)
        count_flushed(flush(next_));
    for (; most != 0 && budget != 0 && next_ != submitted_; --most)
        if (!execute(budget))
            break;
    const unsigned moved = next_ - before + under_way_;
    if (completed_ != handed_ || record_refused_)
        complete();
    return moved;
}

/// Executes the entry at next_, or a part of it. Returns whether the next one may follow.
bool copy_work::execute(std::uint64_t& budget)
{
    if (!under_way_ && !begin())
        return false;
    if (!under_way_)
        return true;                     // there was nothing to copy
    if (removals_ != keys_.removals()) { // what was found may have gone
        if (refusal reason = read_copy(entry_, keys_, request_); reason != refusal::none) {
            under_way_ = false;
            fail(next_, reason);
            return false;
        }
        removals_ = keys_.removals();
    }
    carry_on(budget);
    return !under_way_;
}

/// Takes up the entry at next_. Returns whether it could be executed.
bool copy_work::begin()
{
    refusal reason = fetch_any(ring_.entries, next_, submitted_ - next_, entry_);
    if (reason == refusal::none && entry_.opcode == WEFTIO_OPCODE_NOP) {
        finish(false);
        return true;
    }
    if (reason == refusal::none)
        reason = entry_.opcode == dma_copy ? read_copy(entry_, keys_, request_) : refusal::unknown_opcode;
    if (reason != refusal::none) {
        fail(next_, reason);
        return false;
    }
    removals_ = keys_.removals();
    done_ = 0;
    under_way_ = true;
    return true;
}

void copy_work::carry_on(std::uint64_t& budget) noexcept
{
    const std::uint64_t bytes = std::min(budget, request_.bytes - done_);
    if (request_.from)
        std::memmove(request_.to + done_, request_.from + done_, bytes); // an entry may name bytes that overlap
    else
        fill(request_.to + done_, bytes, request_.pattern, done_);
    budget -= bytes;
    done_ += bytes;
    if (done_ == request_.bytes)
        finish(true);
}

void copy_work::finish(bool copy)
{
    under_way_ = false;
    executed(next_) = {.blocks = static_cast<std::uint8_t>(entry_.blocks()),
                       .event = entry_.event,
                       .counts = copy,
                       .bytes = copy ? static_cast<std::uint32_t>(request_.bytes) : 0};
    handed_ = next_ += entry_.blocks();
    enqueued.add(1);
    if (!copy)
        skipped.add(1);
}

void copy_work::count_done(std::uint64_t entries, std::uint64_t bytes)
{
    copied.add(entries);
    copied_bytes.add(bytes);
}

void copy_work::stop()
{
    look();
    under_way_ = false;
    failed_ = true;
    count_flushed(flush(next_));
    complete();
}

void copy_work::restart(const tx_ring& ring) noexcept
{
    begin_again(ring, 0);
}

} // namespace weftio::nic
