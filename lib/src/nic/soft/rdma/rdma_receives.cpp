#include "nic/soft/rdma/rdma_receives.hpp"

#include <utility>

#include "core/clock.hpp"
#include "nic/soft/work/completion_ring.hpp"

namespace weftio::nic::soft {

namespace {

std::uint32_t opcode_of(const roce::receive_completion& completion) noexcept
{
    if (completion.result != refusal::none)
        return WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
    switch (completion.by) {
        case roce::filled_by::send: return WEFTIO_CQE_OPCODE_RESPONDER_SEND;
        case roce::filled_by::send_immediate: return WEFTIO_CQE_OPCODE_RESPONDER_SEND_IMMEDIATE;
        case roce::filled_by::send_invalidate: return WEFTIO_CQE_OPCODE_RESPONDER_SEND_INVALIDATE;
        case roce::filled_by::write_immediate: return WEFTIO_CQE_OPCODE_RESPONDER_WRITE;
    }
    return WEFTIO_CQE_OPCODE_RESPONDER_ERROR;
}

} // namespace

roce::taken rdma_receives::take()
{
    const roce::taken found = shared_ ? shared_->take(current_) : posted_.take(current_);
    record_refused_ = found == roce::taken::refused;
    if (record_refused_)
        failure_ = refusal::wrong_doorbell;
    if (found != roce::taken::entry || may_complete())
        return found;
    return_current();
    return roce::taken::none;
}

/// Reserves a completion queue entry for the current receive entry. Without one, the receive entry is not ready.
bool rdma_receives::may_complete() noexcept
{
    if (target() && !silent_)
        has_reservation_ = target()->reserve();
    return !target() || silent_ || has_reservation_;
}

refusal rdma_receives::deliver(std::uint32_t offset, std::span<const std::uint8_t> bytes)
{
    return scatter(receive_segments(current_.segments), keys_, staged_, offset, bytes, refusal::receive_too_short);
}

void rdma_receives::return_current() noexcept
{
    if (shared_)
        shared_->give_back(current_);
    else
        posted_.give_back();
}

void rdma_receives::give_back()
{
    return_current();
    if (std::exchange(has_reservation_, false))
        target()->release();
}

void rdma_receives::complete(const roce::receive_completion& completion)
{
    if (staged_ == nullptr || silent_ || (staged_->settled() && waiting_.empty())) [[likely]]
        return complete_now(completion);
    waiting_.push_back({completion, current_, std::exchange(has_reservation_, false), staged_->ticket()});
}

void rdma_receives::settle()
{
    const receive_entry current = current_;
    const bool has_reservation = has_reservation_;
    auto each = waiting_.begin();
    for (; each != waiting_.end() && staged_->is_over(each->ticket); ++each) {
        const refusal why = staged_->failure_of(each->ticket);
        if (why != refusal::none && each->completion.result == refusal::none)
            each->completion = {.result = failure_ == refusal::none ? why : refusal::flushed};
        current_ = each->entry;
        has_reservation_ = each->has_reservation;
        complete_now(each->completion);
    }
    waiting_.erase(waiting_.begin(), each);
    current_ = current;
    has_reservation_ = has_reservation;
}

/// Nobody learns of these messages.
void rdma_receives::drop_waiting() noexcept
{
    for (; !waiting_.empty(); waiting_.pop_back()) {
        if (shared_)
            shared_->give_back(waiting_.back().entry);
        if (waiting_.back().has_reservation)
            target()->release();
    }
}

void rdma_receives::complete_now(const roce::receive_completion& completion)
{
    if (shared_ && silent_)
        return give_back(); // nobody would learn of it: another queue pair takes it
    received.add(1);
    const bool good = completion.result == refusal::none;
    const bool fails = !good && completion.result != refusal::flushed;
    (good ? filled : fails ? failed : flushed).add(1);
    if (fails) {
        failure_ = completion.result;
        failed_entry_ = current_.index;
    }
    publish(completion, core::utc_stamp_ns());
}

/// Writes the completion of the current entry (docs/formats.md, "Completions").
void rdma_receives::publish(const roce::receive_completion& completion, std::uint64_t now_ns)
{
    const bool good = completion.result == refusal::none;
    const soft::completion report{.queue = queue_,
                                  .user_index = posted_.ring().target.user_index,
                                  .opcode = opcode_of(completion),
                                  .index = current_.index,
                                  .bytes = completion.bytes,
                                  .immediate_or_key = completion.immediate_or_key,
                                  .source = completion.source,
                                  .solicited = completion.solicited && good,
                                  .reason = completion.result,
                                  .time_ns = now_ns};
    if (target()) {
        if (std::exchange(has_reservation_, false))
            target()->release();
        if (!silent_ && target()->has_room())
            target()->put(report);
        return;
    }
    const rdma_rx_ring& ring = posted_.ring();
    weftio_cqe& cqe = ring.completions[current_.index & (ring.depth - 1)];
    const std::uint32_t publication = write_completion(cqe, report, current_.index / ring.depth);
    // Release: a kernel that sees this may read what arrived.
    weftio_store_release_sys_u32(&cqe.publication, publication);
}

bool rdma_receives::overran() const noexcept
{
    return target() && target()->overrun();
}

std::uint32_t rdma_receives::flush()
{
    std::uint32_t count = 0;
    if (shared_)
        return count;
    for (; take() == roce::taken::entry; ++count)
        complete({.result = refusal::flushed});
    return count;
}

void rdma_receives::restart(const rdma_rx_ring& ring) noexcept
{
    drop_waiting();
    posted_.restart(ring);
    failure_ = refusal::none;
    failed_entry_.reset();
    silent_ = record_refused_ = false;
}

} // namespace weftio::nic::soft
