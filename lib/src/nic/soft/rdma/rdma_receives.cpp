#include "nic/soft/rdma/rdma_receives.hpp"

#include <algorithm>
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

/// Reads the doorbell record (docs/formats.md, "Doorbells"). A record that posts more than the ring holds is refused:
/// nothing more is posted until restart().
void rdma_receives::read_doorbell_record() noexcept
{
    if (record_refused())
        return;
    // Acquire, pairs with the release of the kernel: the entries are written, and it has read their completions.
    const auto posted = static_cast<std::uint16_t>(weftio_swap32(weftio_load_acquire_sys_u32(ring_.dbrec)));
    const auto more = static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(posted_));
    if (posted_ - taken_ + more > ring_.depth)
        failure_ = refusal::wrong_doorbell;
    else
        posted_ += more;
}

std::uint32_t rdma_receives::waiting() const noexcept
{
    if (ring_.depth == 0)
        return 0;
    const auto posted = static_cast<std::uint16_t>(weftio_swap32(weftio_load_relaxed_u32(ring_.dbrec)));
    return std::min<std::uint32_t>(static_cast<std::uint16_t>(posted - static_cast<std::uint16_t>(taken_)),
                                   ring_.depth);
}

roce::taken rdma_receives::take()
{
    if (ring_.depth == 0)
        return roce::taken::none;
    if (taken_ == posted_)
        read_doorbell_record();
    if (taken_ == posted_)
        return record_refused() ? roce::taken::refused : roce::taken::none;
    return may_complete() ? roce::taken::entry : roce::taken::none;
}

/// Reserves a completion queue entry for the next receive entry. Without one, the receive entry is not ready.
bool rdma_receives::may_complete() noexcept
{
    if (ring_.target.ring && !silent_)
        has_reservation_ = ring_.target.ring->reserve();
    return !ring_.target.ring || silent_ || has_reservation_;
}

/// Reads the entry again for each packet: it does not change until it is completed.
refusal rdma_receives::deliver(std::uint32_t offset, std::span<const std::uint8_t> bytes)
{
    const ring_segments entry(ring_.words, ring_.depth * ring_.segments, slot() * ring_.segments, ring_.segments);
    return scatter(receive_segments(entry), keys_, offset, bytes, refusal::receive_too_short);
}

void rdma_receives::give_back()
{
    if (std::exchange(has_reservation_, false))
        ring_.target.ring->release();
}

void rdma_receives::complete(const roce::receive_completion& completion)
{
    received.add(1);
    const bool good = completion.result == refusal::none;
    const bool fails = !good && completion.result != refusal::flushed;
    (good ? filled : fails ? failed : flushed).add(1);
    if (fails) {
        failure_ = completion.result;
        failed_entry_ = taken_;
    }
    publish(completion, core::utc_stamp_ns());
    ++taken_;
}

/// Writes completion `taken_` (docs/formats.md, "Completions").
void rdma_receives::publish(const roce::receive_completion& completion, std::uint64_t now_ns)
{
    const bool good = completion.result == refusal::none;
    const soft::completion report{.queue = queue_,
                                  .user_index = ring_.target.user_index,
                                  .opcode = opcode_of(completion),
                                  .index = taken_,
                                  .bytes = completion.bytes,
                                  .immediate_or_key = completion.immediate_or_key,
                                  .solicited = completion.solicited && good,
                                  .reason = completion.result,
                                  .time_ns = now_ns};
    if (ring_.target.ring) {
        if (std::exchange(has_reservation_, false))
            ring_.target.ring->release();
        if (!silent_ && ring_.target.ring->has_room())
            ring_.target.ring->put(report);
        return;
    }
    weftio_cqe& cqe = ring_.completions[slot()];
    const std::uint32_t publication = write_completion(cqe, report, taken_ / ring_.depth);
    // Release: a kernel that sees this may read what arrived.
    weftio_store_release_sys_u32(&cqe.publication, publication);
}

bool rdma_receives::overran() const noexcept
{
    return ring_.target.ring && ring_.target.ring->overrun();
}

std::uint32_t rdma_receives::flush()
{
    std::uint32_t count = 0;
    for (; take() == roce::taken::entry; ++count)
        complete({.result = refusal::flushed});
    return count;
}

void rdma_receives::restart(const rdma_rx_ring& ring) noexcept
{
    ring_ = ring;
    posted_ = taken_ = 0;
    failure_ = refusal::none;
    failed_entry_.reset();
    silent_ = false;
}

} // namespace weftio::nic::soft
