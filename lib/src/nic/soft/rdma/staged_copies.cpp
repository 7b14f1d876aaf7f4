#include "nic/soft/rdma/staged_copies.hpp"

#include <algorithm>
#include <utility>

#include "net/roce_rules.hpp"

namespace weftio::nic::soft {

namespace {

std::byte* first_of(const devices::memory_block& memory) noexcept
{
    return static_cast<std::byte*>(memory.at.cpu);
}

} // namespace

staged_stream::staged_stream(std::shared_ptr<devices::copy_queue> copies,
                             std::shared_ptr<const devices::memory_block> memory)
    : to_device(first_of(*memory), bytes_each_way), to_host(first_of(*memory) + bytes_each_way, bytes_each_way),
      memory_(std::move(memory)), copies_(std::move(copies))
{}

void staged_stream::add(const wanted_copy& more, const std::shared_ptr<copies_of_pair>& of, std::uint64_t ticket)
{
    const bool joins = next_.bytes != 0 && of_ == of && next_.which == more.which && next_.by_peer == more.by_peer &&
                       next_.block == more.block && next_.host + next_.bytes == more.host &&
                       next_.device + next_.bytes == more.device;
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
    const bool goes_up = copy.goes_up();
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
    submit(of);
    if (begun_by_.empty() || begun_by_.back() != of)
        begun_by_.push_back(of);
    if (blocks_.empty() || blocks_.back() != what.block)
        blocks_.push_back(what.block);
    of->last = ticket();
    by.add(what, of, ticket());
}

bool staged_copies::append(const wanted_copy& more, const std::uint8_t* bytes, collected_bytes& to,
                           bool this_turn) noexcept
{
    wanted_copy& copy = to.copy;
    const std::size_t room = copy.block.bytes() - static_cast<std::size_t>(copy.host - copy.block.first());
    const bool continues = copy.device + copy.bytes == more.device && copy.by_peer == more.by_peer;
    if (!continues || copy.bytes + more.bytes > room || (more.bytes <= bytes_of_a_value && !this_turn))
        return false;
    std::copy_n(bytes, more.bytes, reinterpret_cast<std::uint8_t*>(copy.host + copy.bytes));
    copy.bytes += more.bytes;
    return true;
}

/// Packets of a long message are as long as the path MTU, so others are likely to follow.
bool staged_copies::collect(staged_stream& by, wanted_copy to, const std::uint8_t* bytes,
                            const std::shared_ptr<copies_of_pair>& of)
{
    collected_bytes& now = of->collected;
    if (now.by == &by && append(to, bytes, now, now.since == turns_))
        return true;
    submit(of);
    const bool more_likely = to.bytes >= net::smallest_path_mtu;
    to.block = by.to_device.take(to.bytes, more_likely ? staging_blocks::most_bytes : to.bytes);
    if (!to.block)
        return false;
    to.host = to.block.first();
    std::copy_n(bytes, to.bytes, reinterpret_cast<std::uint8_t*>(to.host));
    collecting_.push_back(of);
    now = {.by = &by, .copy = std::move(to), .since = turns_};
    return true;
}

void staged_copies::submit(const std::shared_ptr<copies_of_pair>& of)
{
    if (of->collected.by == nullptr)
        return;
    const collected_bytes all = std::exchange(of->collected, {});
    std::erase(collecting_, of);
    begin(*all.by, all.copy, of);
}

void staged_copies::submit_all()
{
    while (!collecting_.empty())
        submit(std::shared_ptr(collecting_.back()));
}

void staged_copies::end_turn(std::uint64_t round)
{
    ++turns_;
    if (std::exchange(round_, round) != round)
        submit_all();
    while (!collecting_.empty() && turns_ - collecting_.front()->collected.since >= most_turns_collected)
        submit(std::shared_ptr(collecting_.front()));
    end_batches();
}

void staged_copies::end_batches()
{
    if (begun_by_.empty())
        return;
    const std::uint64_t ended = ticket();
    for (std::size_t each = 0; each != streams_.count(); ++each) {
        staged_stream& stream = streams_.at(each);
        if (const std::uint32_t number = stream.end_batch(); number != 0)
            batches_.push_back({ended, &stream, number, begun_by_, blocks_});
    }
    begun_by_.clear();
    blocks_.clear();
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
        batches_.pop_front();
    }
    over_ = batches_.empty() ? ended_ : batches_.front().ticket - 1;
}

/// The device has failed: who has begun copies in this batch cannot tell which of them were made.
void staged_copies::lose(const batch& lost) noexcept
{
    for (const std::shared_ptr<copies_of_pair>& each : lost.of)
        if (each->failed.why == refusal::none)
            each->failed = {.why = refusal::device_failed, .ticket = lost.ticket};
}

staging_block staged_copies::holder(const std::uint8_t* at) const noexcept
{
    for (std::size_t each = 0; each != streams_.count(); ++each)
        if (staging_block found = streams_.at(each).to_host.holder(at))
            return found;
    return {};
}

} // namespace weftio::nic::soft
