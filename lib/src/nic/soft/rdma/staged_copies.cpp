#include "nic/soft/rdma/staged_copies.hpp"

#include <algorithm>
#include <utility>

namespace weftio::nic::soft {

namespace {

std::byte* first_of(const devices::memory_block& memory) noexcept
{
    return static_cast<std::byte*>(memory.at.cpu);
}

} // namespace

staged_stream::staged_stream(std::shared_ptr<devices::copy_queue> copies,
                             std::shared_ptr<const devices::memory_block> memory)
    : to_device(first_of(*memory), ring_bytes), to_host(first_of(*memory) + ring_bytes, ring_bytes),
      memory_(std::move(memory)), copies_(std::move(copies))
{}

void staged_stream::add(const wanted_copy& more, const std::shared_ptr<copies_of_pair>& of, std::uint64_t ticket)
{
    const bool joins = next_.bytes != 0 && of_ == of && next_.which == more.which && next_.by_peer == more.by_peer &&
                       next_.host + next_.bytes == more.host && next_.device + next_.bytes == more.device;
    if (joins) {
        next_.bytes += more.bytes;
        return;
    }
    start();
    next_ = more;
    of_ = of;
    ticket_ = ticket;
}

/// A copy that the driver refuses fails its queue pair; others go on.
void staged_stream::start() noexcept
{
    const wanted_copy copy = std::exchange(next_, {});
    const std::shared_ptr<copies_of_pair> of = std::exchange(of_, nullptr);
    if (copy.bytes == 0 || of->failed.why != refusal::none)
        return; // what follows a failed copy is not done either
    const bool goes_up = copy.which == devices::copy_queue::direction::to_device;
    const bool made =
        copies_->try_copy(goes_up ? copy.device : copy.host, goes_up ? copy.host : copy.device, copy.bytes, copy.which);
    if (made) {
        begun_ = true;
        return;
    }
    of->failed = {.why = copies_->failed() ? refusal::device_failed : refusal::memory_gone,
                  .ticket = ticket_,
                  .by_peer = copy.by_peer,
                  .psn = copy.psn,
                  .reads = copy.by_peer && !goes_up};
}

std::uint32_t staged_stream::end_batch() noexcept
{
    start();
    if (!std::exchange(begun_, false))
        return 0;
    if (++ended_ == 0)
        ended_ = 1; // 0 stands for no batch
    copies_->mark(ended_);
    return ended_;
}

void staged_copies::begin(staged_stream& by, const wanted_copy& what, const std::shared_ptr<copies_of_pair>& of)
{
    if (begun_by_.empty() || begun_by_.back() != of)
        begun_by_.push_back(of);
    of->last = ticket();
    by.add(what, of, ticket());
}

/// The bytes of copies that were refused are freed with those of the batch, or at once.
void staged_copies::end_turn()
{
    if (begun_by_.empty())
        return;
    const std::uint64_t ended = ticket();
    for (std::size_t each = 0; each != streams_.count(); ++each) {
        staged_stream& stream = streams_.at(each);
        if (const std::uint32_t number = stream.end_batch(); number != 0)
            batches_.push_back({ended, &stream, number, stream.to_device.end(), begun_by_});
    }
    begun_by_.clear();
    ended_ = ended;
}

void staged_copies::take_up() noexcept
{
    while (!batches_.empty()) {
        const batch& oldest = batches_.front();
        if (!oldest.stream->completed(oldest.number)) {
            if (!oldest.stream->failed())
                break;
            lose(oldest);
        }
        oldest.stream->to_device.free_to(oldest.free_to);
        batches_.pop_front();
    }
    over_ = batches_.empty() ? ended_ : batches_.front().ticket - 1;
}

/// Of copies that were refused, or whose packet was never queued.
void staged_copies::free_unused(bool no_packets) noexcept
{
    if (!batches_.empty() || !begun_by_.empty())
        return;
    for (std::size_t each = 0; each != streams_.count(); ++each) {
        staged_stream& stream = streams_.at(each);
        stream.to_device.free_to(stream.to_device.end());
        if (no_packets)
            stream.to_host.free_to(stream.to_host.end());
    }
}

/// The device has failed: who has begun copies in this batch cannot tell which of them were made.
void staged_copies::lose(const batch& lost) noexcept
{
    for (const std::shared_ptr<copies_of_pair>& each : lost.of)
        if (each->failed.why == refusal::none)
            each->failed = {.why = refusal::device_failed, .ticket = lost.ticket};
}

staged_stream* staged_copies::holder(const std::uint8_t* at) const noexcept
{
    for (std::size_t each = 0; each != streams_.count(); ++each)
        if (streams_.at(each).to_host.holds(at))
            return &streams_.at(each);
    return nullptr;
}

} // namespace weftio::nic::soft
