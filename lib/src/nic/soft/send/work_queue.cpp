#include "nic/soft/send/work_queue.hpp"

#include "core/clock.hpp"

namespace weftio::nic {

work_queue::work_queue(const tx_ring& ring)
    : ring_(ring), executed_(ring.entries.depth), events_(2 * ring.entries.depth)
{}

/// The doorbell is a wake-up only; what counts is the record.
void work_queue::look()
{
    std::uint64_t doorbell = weftio_load_acquire_sys_u64(ring_.doorbell);
    if (doorbell == doorbell_)
        return;
    doorbell_ = doorbell;
    // Acquire, pairs with the commit's release: the entries are written.
    auto committed = static_cast<std::uint16_t>(weftio_swap32(weftio_load_acquire_sys_u32(ring_.dbrec)));
    auto more = static_cast<std::uint16_t>(committed - static_cast<std::uint16_t>(submitted_));
    if (submitted_ - completed_ + more > ring_.entries.depth)
        refuse_record();
    else
        submitted_ += more;
}

/// The entry at `index` cannot be executed: the queue is in error, and what is behind is flushed.
void work_queue::fail(std::uint32_t index, refusal reason, std::uint32_t detail)
{
    failed_ = true;
    failed_entries.add(1);
    enqueued.add(1);
    events_.put({.position = index, .reason = reason, .time_ns = detail::utc_now_ns(), .detail = detail});
    bury(index, reason);
    count_flushed(flush(index + 1));
}

/// No entry stands for a record that claims too much: the ring may be full. What has not been executed is flushed, and
/// once the rest is done a completion says error.
void work_queue::refuse_record()
{
    if (failed_)
        return;
    failed_ = record_refused_ = true;
    failed_entries.add(1);
    enqueued.add(1);
    events_.put({.position = submitted_, .reason = refusal::wrong_doorbell, .time_ns = detail::utc_now_ns()});
    give_up_wait();
    count_flushed(flush(next_));
}

/// The block at `index` is done without having been executed.
void work_queue::bury(std::uint32_t index, refusal reason)
{
    executed_entry& entry = executed(index);
    entry.blocks = 1;
    entry.reason = reason;
    settle(index);
}

/// Buries all from `from` on. Those in front complete as they come back. Returns how many, which the caller counts.
std::uint32_t work_queue::flush(std::uint32_t from)
{
    for (std::uint32_t index = from; index != submitted_; ++index)
        bury(index, refusal::flushed);
    next_ = submitted_;
    if (all_handed())
        handed_ = next_;
    return submitted_ - from;
}

void work_queue::count_flushed(std::uint64_t entries) noexcept
{
    flushed.add(entries);
    enqueued.add(entries);
}

/// Completes, in order, what came back. One completion stands for all of them, but the first failure gets its own.
unsigned work_queue::complete()
{
    const std::uint32_t before = completed_;
    std::uint64_t done = complete_plain(), bytes = 0, now_ns = detail::utc_stamp_ns();
    if ((completed_ & (ring_.entries.depth - 1)) == 0)
        done += complete_plain(); // behind the end of the ring
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
    if (record_refused_ && completed_ == next_) {
        publish(completed_ - 1, refusal::wrong_doorbell, now_ns);
        record_refused_ = false;
    }
    return completed_ - before;
}

void work_queue::publish(std::uint32_t index, refusal reason, std::uint64_t now_ns)
{
    weftio_cqe& cqe = *ring_.completion;
    bool good = reason == refusal::none;
    weftio_store_release_sys_u64(&cqe.timestamp_be,
                                 weftio_swap64(good ? weftio_real_time_from_ns(now_ns) : syndrome_of(reason)));
    cqe.sop_drop_qpn_be = weftio_swap32(ring_.entries.queue);
    // Release: the entry and its buffer may be used again once this is seen.
    weftio_store_release_sys_u32(
        &cqe.publication,
        weftio_cqe_publication(index, good ? WEFTIO_CQE_OPCODE_REQUESTER : WEFTIO_CQE_OPCODE_REQUESTER_ERROR, 0));
}

/// @param index  of the first entry of the ring
void work_queue::begin_again(const tx_ring& ring, std::uint32_t index) noexcept
{
    std::uint32_t queue = ring_.entries.queue;
    ring_ = ring;
    ring_.entries.queue = queue;
    doorbell_ = 0;
    submitted_ = next_ = handed_ = completed_ = index;
    failed_ = record_refused_ = false;
}

} // namespace weftio::nic
