#include "nic/soft/work/work_ring.hpp"

#include <algorithm>

#include "core/clock.hpp"
#include "nic/soft/work/completion_ring.hpp"

namespace weftio::nic::soft {

work_ring::work_ring(const tx_ring& ring) : ring_(ring), executed_(ring.entries.depth), events_(2 * ring.entries.depth)
{}

/// Send step 3: reads the doorbell record, which says what was committed (docs/formats.md, "Doorbells"). A record that
/// claims more than the ring holds is refused.
void work_ring::read_doorbell_record()
{
    // Acquire, pairs with the release of the commit: the entries are written.
    const std::uint32_t record = weftio_load_acquire_sys_u32(ring_.dbrec);
    if (record == record_)
        return;
    record_ = record;
    auto committed = static_cast<std::uint16_t>(weftio_swap32(record));
    auto more = static_cast<std::uint16_t>(committed - static_cast<std::uint16_t>(submitted_));
    if (submitted_ - completed_ + more > ring_.entries.depth)
        refuse_record();
    else
        submitted_ += more;
}

/// Send step 4, for a bad entry: the entry at `index` cannot be executed. Puts the queue in error and flushes the later
/// entries.
void work_ring::fail(std::uint32_t index, refusal reason, std::uint32_t detail)
{
    failed_.store(true, std::memory_order_relaxed);
    failed_entries.add(1);
    enqueued.add(1);
    events_.put({.position = index, .reason = reason, .time_ns = core::utc_now_ns(), .detail = detail});
    count_flushed(flush(index + bury(index, reason)));
}

/// Refuses a doorbell record that claims too much. The ring may be full, so no entry can carry the failure. Flushes
/// what has not been executed; once the entries before it are done, a completion reports the error.
void work_ring::refuse_record()
{
    if (failed())
        return;
    failed_.store(true, std::memory_order_relaxed);
    failure_to_publish_ = refusal::wrong_doorbell;
    failed_entries.add(1);
    enqueued.add(1);
    events_.put({.position = submitted_, .reason = refusal::wrong_doorbell, .time_ns = core::utc_now_ns()});
    give_up_wait();
    count_flushed(flush(next_));
}

/// Marks the block at `index` as done without executing it; if entries complete one by one, marks the whole entry.
/// Returns the number of blocks.
std::uint32_t work_ring::bury(std::uint32_t index, refusal reason)
{
    executed_entry& entry = executed(index);
    entry = {.reason = reason};
    if (completes_each())
        read_head(index, entry);
    mark_done(index);
    return entry.blocks;
}

/// Reads opcode and length of an entry that ends without being executed. The length is limited to the committed blocks.
void work_ring::read_head(std::uint32_t index, executed_entry& out) const
{
    constexpr std::uint32_t words_per_block = 16, segments_per_block = 4;
    const std::uint32_t* const head =
        ring_.entries.words + std::size_t{index & (ring_.entries.depth - 1)} * words_per_block;
    const std::uint32_t segments = weftio_swap32(weftio_load_relaxed_u32(head + 1)) & 0x3f;
    const std::uint32_t blocks = (segments + segments_per_block - 1) / segments_per_block;
    out.opcode = static_cast<std::uint8_t>(weftio_swap32(weftio_load_relaxed_u32(head)));
    out.blocks = static_cast<std::uint8_t>(std::clamp(blocks, 1u, submitted_ - index));
}

/// Flushes [from, submitted). Earlier entries complete as they come back. Returns how many it has flushed, for the
/// caller to count: entries if they complete one by one, else blocks.
std::uint32_t work_ring::flush(std::uint32_t from)
{
    std::uint32_t count = 0;
    for (std::uint32_t index = from; index != submitted_; ++count)
        index += bury(index, refusal::flushed);
    next_ = submitted_;
    if (all_handed())
        handed_ = next_;
    return count;
}

void work_ring::count_flushed(std::uint64_t entries) noexcept
{
    flushed.add(entries);
    enqueued.add(entries);
}

/// Send step 6 and RDMA step 15: completes, in order, the entries that came back.
unsigned work_ring::complete()
{
    return completes_each() ? complete_each(*ring_.completions.ring) : complete_collapsed();
}

/// Writes a completion for each entry that asks for one or fails, unless it is quiet; other entries are done with the
/// next completion. While the completion queue is full, entries wait.
unsigned work_ring::complete_each(completion_ring& to)
{
    const std::uint32_t before = completed_;
    std::uint64_t done = 0, bytes = 0;
    const std::uint64_t now_ns = core::utc_stamp_ns();
    held_ = false;
    while (completed_ != handed_ && returned(completed_)) {
        const executed_entry& entry = executed(completed_);
        const bool good = entry.reason == refusal::none;
        const bool fails = !good && !(entry.quiet && entry.reason != refusal::flushed);
        const bool due = !silent_ && (fails || entry.asked || !ring_.completions.only_asked);
        held_ = due && !to.has_room();
        if (held_)
            break;
        if (good) {
            done += entry.counts;
            bytes += entry.counts ? entry.bytes : 0;
            if (entry.event)
                events_.put({.position = completed_, .reason = refusal::none, .time_ns = now_ns});
        }
        if (due)
            to.put({.queue = ring_.entries.queue,
                    .user_index = ring_.completions.user_index,
                    .opcode = good ? WEFTIO_CQE_OPCODE_REQUESTER : WEFTIO_CQE_OPCODE_REQUESTER_ERROR,
                    .entry_opcode = entry.opcode,
                    .index = completed_,
                    .bytes = good ? entry.bytes : 0,
                    .reason = entry.reason,
                    .time_ns = now_ns});
        completed_ += entry.blocks;
    }
    if (completed_ != before)
        count_done(done, bytes);
    if (to.overrun())
        overrun();
    failure_to_publish_ = refusal::none; // this failure has no completion; the host gets an event
    return completed_ - before;
}

watched_word work_ring::wakes_by() const noexcept
{
    if (is_held())
        return {ring_.completions.ring->record(), ring_.completions.ring->record_seen()};
    return {ring_.dbrec, record_};
}

bool work_ring::overran() const noexcept
{
    return completes_each() && ring_.completions.ring->overrun();
}

/// The completion queue has overrun: fails the queue.
void work_ring::overrun()
{
    if (failed())
        return;
    failed_.store(true, std::memory_order_relaxed);
    events_.put({.position = completed_, .reason = refusal::completions_overrun, .time_ns = core::utc_now_ns()});
    give_up_wait();
    count_flushed(flush(next_));
}

/// One completion stands for all entries that came back. The first failure gets a completion of its own.
unsigned work_ring::complete_collapsed()
{
    const std::uint32_t before = completed_;
    std::uint64_t done = complete_plain(), bytes = 0, now_ns = core::utc_stamp_ns();
    if ((completed_ & (ring_.entries.depth - 1)) == 0)
        done += complete_plain(); // continues at the start of the ring
    std::uint32_t last = completed_ - 1;
    refusal reason = refusal::none;
    while (completed_ != handed_ && returned(completed_)) {
        const executed_entry& entry = executed(completed_);
        reason = entry.reason;
        if (reason == refusal::none) {
            done += entry.counts;
            bytes += entry.counts ? entry.bytes : 0;
            if (entry.event)
                events_.put({.position = completed_, .reason = refusal::none, .time_ns = now_ns});
        } else if (reason != refusal::flushed) {
            publish(completed_, reason, now_ns);
        }
        last = completed_;
        completed_ += entry.blocks;
    }
    if (completed_ != before) {
        count_done(done, bytes);
        publish(last, reason, now_ns);
    }
    if (has_failure_to_publish() && completed_ == next_) {
        publish(completed_ - 1, failure_to_publish_, now_ns);
        failure_to_publish_ = refusal::none;
    }
    return completed_ - before;
}

/// Send step 6, RDMA step 15: writes the collapsed completion, which names the entry at `index` (docs/formats.md,
/// "Completions").
void work_ring::publish(std::uint32_t index, refusal reason, std::uint64_t now_ns)
{
    weftio_cqe& cqe = *ring_.completion;
    bool good = reason == refusal::none;
    weftio_store_release_sys_u64(&cqe.timestamp_be,
                                 weftio_swap64(good ? weftio_real_time_from_ns(now_ns) : core::error_word_of(reason)));
    cqe.sop_drop_qpn_be = weftio_swap32(ring_.entries.queue);
    // Release: a kernel that sees this may use the entry and its buffer again.
    weftio_store_release_sys_u32(
        &cqe.publication,
        weftio_cqe_publication(index, good ? WEFTIO_CQE_OPCODE_REQUESTER : WEFTIO_CQE_OPCODE_REQUESTER_ERROR, 0));
}

/// Starts again in a fresh ring. @param index  index of its first entry
void work_ring::begin_again(const tx_ring& ring, std::uint32_t index) noexcept
{
    std::uint32_t queue = ring_.entries.queue;
    ring_ = ring;
    ring_.entries.queue = queue;
    record_ = weftio_swap32(index & 0xffff);
    submitted_ = next_ = handed_ = completed_ = index;
    failed_.store(false, std::memory_order_relaxed);
    held_ = false;
    failure_to_publish_ = refusal::none;
    silent_ = false;
}

} // namespace weftio::nic::soft
