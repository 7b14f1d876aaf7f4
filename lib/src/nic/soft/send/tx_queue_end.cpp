// How an Ethernet send queue fails, ends and starts again.
#include <rte_mbuf.h>

#include <algorithm>
#include <functional>

#include "core/clock.hpp"
#include "keys/key_table.hpp"
#include "nic/soft/send/tx_queue.hpp"

namespace weftio::nic::soft {

void tx_queue::mark_done(std::uint32_t index) noexcept
{
    if (!port_lost_) // after the port is lost, a driver or receiver may still give the mbuf back
        header(index).detach();
}

void tx_queue::give_up_wait()
{
    flush_wait();
    pacing_.leave();
}

/// Counts the wait that holds the queue, if there is one, as flushed, and undoes prepare().
void tx_queue::flush_wait()
{
    if (!pacing_.holding())
        return;
    unprepare();
    flushed.add(1);
}

void tx_queue::stop()
{
    count_flushed(let_go_of_all());
    complete();
}

/// Flushes all entries that have not been handed over, and puts the queue in error. Returns their number, for the
/// caller to count.
std::uint64_t tx_queue::let_go_of_all()
{
    read_doorbell_record();
    flush_wait();
    pacing_.forget();
    std::uint16_t frame = 0;
    std::uint64_t entries = 0;
    for (std::uint32_t index = handed_; index != next_; index += executed(index).blocks)
        if (executed(index).counts && executed(index).reason == refusal::none && frame++ >= staged_first_) {
            executed(index).reason = refusal::flushed;
            ++entries;
        }
    rte_pktmbuf_free_bulk(&staged_[staged_first_], static_cast<unsigned>(staged_end_ - staged_first_));
    staged_first_ = staged_end_ = 0;
    pulling_ = nullptr;
    failed_.store(true, std::memory_order_relaxed);
    return entries + flush(next_);
}

bool tx_queue::has_more()
{
    read_doorbell_record();
    return next_ != submitted_ || staged_first_ != staged_end_;
}

/// Index of the first frame that was not handed over, when the driver has taken part of a burst.
std::uint32_t tx_queue::first_not_handed()
{
    std::uint32_t index = handed_;
    for (std::uint16_t frames = 0; index != next_ && (frames < staged_first_ || !executed(index).counts);
         index += executed(index).blocks)
        frames = static_cast<std::uint16_t>(frames + executed(index).counts);
    return index;
}

void tx_queue::end(refusal reason, std::uint32_t detail)
{
    if (failed())
        return;
    const std::uint32_t first = staged_first_ == 0 ? handed_ : first_not_handed();
    const std::uint64_t entries = let_go_of_all();
    if (entries != 0) { // the first entry fails and is reported; the others are flushed
        failed_entries.add(1);
        enqueued.add(1);
        count_flushed(entries - 1);
    }
    complete();
    events_.put({.position = first, .reason = reason, .time_ns = core::utc_now_ns(), .detail = detail});
}

void tx_queue::lose_port()
{
    end(refusal::port_gone);
    stop(); // end() does nothing to a queue in error; stop() flushes it
    for (std::uint32_t index = completed_; index != handed_; index += executed(index).blocks)
        if (executed(index).counts && executed(index).reason == refusal::none && !header(index).returned()) {
            executed(index).reason = refusal::flushed; // the driver took the frame and is gone
            flushed.add(1);
        }
    port_lost_ = true;
    complete();
}

bool tx_queue::all_returned() const noexcept
{
    return completed_ == submitted_ &&
           (!port_lost_ || std::all_of(&headers_[0], &headers_[ring_.entries.depth],
                                       [](const send_header& head) { return head.returned(); }));
}

void tx_queue::restart(const tx_ring& ring, std::uint32_t index) noexcept
{
    begin_again(ring, index);
    stamp_ns_ = 0;
}

bool tx_queue::uses(const std::byte* begin, std::size_t bytes) noexcept
{
    auto lies_there = [&](const send_header& head) {
        auto* frame = static_cast<const std::byte*>(head.mbuf.buf_addr);
        return !head.returned() && !std::less<>()(frame, begin) && std::less<>()(frame, begin + bytes);
    };
    if (port_lost_) // entries that the driver took are completed, and the driver may still hold their frames
        return std::any_of(&headers_[0], &headers_[ring_.entries.depth], lies_there);
    for (std::uint32_t index = completed_; index != next_; index += executed(index).blocks)
        if (executed(index).counts && lies_there(header(index)))
            return true;
    return false;
}

} // namespace weftio::nic::soft
