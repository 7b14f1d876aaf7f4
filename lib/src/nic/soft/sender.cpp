#include "nic/soft/sender.hpp"

#include <rte_ethdev.h>
#include <rte_pause.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"
#include "dpdk/capture_writer.hpp"

namespace weftio::nic {

unsigned sender::turn(std::uint32_t most, bool busy)
{
    look_at_doorbells(busy ? looks_of_a_busy_turn : looks_of_an_idle_turn);
    wake_after_removals();
    keep_deadlines(busy);
    unsigned moved = 0;
    bool waits_for_driver = false;
    for (std::size_t at = awake_.size(); at-- > 0;) {
        const place& place = places_[awake_[at].number - 1];
        tx_queue& queue = *place.queue;
        unsigned of_this = queue.turn(place.paused ? 0 : most);
        moved += of_this;
        waits_for_driver = waits_for_driver || queue.waits_for_driver();
        deadlines_.set(awake_[at].number, queue.deadline_ns());
        if (rests(awake_[at], of_this))
            lay_down(at);
    }
    if (wire_.file && wire_.file->failure() != 0)
        refuse(refusal::file_failed, static_cast<std::uint32_t>(wire_.file->failure()));
    // Drivers with a ring of their own look at what they have sent when they are given more: with nothing to give, they
    // are asked.
    if (moved == 0 && waits_for_driver)
        ask_driver();
    return moved;
}

/// Queues whose deadline has come have a turn now, the earliest first. Close to one it is waited for on the spot, so
/// that nothing comes in between.
void sender::keep_deadlines(bool busy) noexcept
{
    if (deadlines_.empty())
        return;
    auto& clock = detail::utc_clock::instance();
    std::uint64_t now_ns = clock.stamp_ns(); // a little early: nothing goes before its time
    spin_.turn_began(now_ns);
    if (now_ns < deadlines_.first_ns() && spin_.begins(deadlines_.first_ns(), now_ns, busy)) {
        for (; now_ns < deadlines_.first_ns(); now_ns = clock.now_ns())
            rte_pause();
        spin_.ended(now_ns);
    }
    const std::size_t before = awake_.size();
    while (!deadlines_.empty() && deadlines_.first_ns() <= now_ns) {
        const std::uint32_t number = deadlines_.first_queue();
        deadlines_.set(number, 0);
        queue(number).let_go();
        wake(number);
    }
    // Turns begin with the last one of awake_.
    std::reverse(awake_.begin() + static_cast<std::ptrdiff_t>(before), awake_.end());
}

/// What lies ready behind a wait may lie in memory whose key has gone.
void sender::wake_after_removals() noexcept
{
    if (removals_ == keys_.removals())
        return;
    removals_ = keys_.removals();
    for (std::uint32_t number = 1; number <= queues(); ++number)
        if (places_[number - 1].asleep != nowhere && queue(number).deadline_ns() != 0)
            wake(number);
}

/// Whether a queue that has had its turn needs no more of them before its doorbell is rung, or its deadline comes.
bool sender::rests(awake& each, unsigned moved) noexcept
{
    const tx_queue& queue = *places_[each.number - 1].queue;
    each.idle_turns = moved == 0 && queue.idle() ? each.idle_turns + 1 : 0;
    return each.idle_turns == turns_awake || queue.only_waits();
}

unsigned sender::turn_without_link(bool given_up)
{
    if (given_up)
        refuse(refusal::link_down, 0);
    unsigned moved = 0;
    for (place& place : places_)
        if (place.queue)
            moved += place.queue->failed() ? place.queue->turn(0) : place.queue->collect();
    return moved;
}

/// What is to be sent cannot be.
void sender::refuse(refusal reason, std::uint32_t detail)
{
    for (place& place : places_)
        if (place.queue && !place.queue->failed() && place.queue->has_more())
            place.queue->end(reason, detail);
}

void sender::limit_mtu(std::uint32_t mtu) noexcept
{
    wire_.mtu = std::min(mtu, wire_.most_mtu);
    for (place& place : places_)
        if (place.queue)
            place.queue->go_through(wire_); // the same port queue, at any time
}

/// Drivers that free at once have no such function, and need it not.
void sender::ask_driver() const noexcept
{
    if (port_lost_)
        return;
    if (wire_.empty_bursts)
        rte_eth_tx_burst(wire_.port, wire_.queue, nullptr, 0);
    else
        rte_eth_tx_done_cleanup(wire_.port, wire_.queue, 0);
}

void sender::look_at_doorbells(std::size_t most) noexcept
{
    for (std::size_t left = std::min(most, asleep_.size()); left != 0; --left) {
        looked_ = looked_ + 1 < asleep_.size() ? looked_ + 1 : 0;
        const asleep& queue = asleep_[looked_];
        if (weftio_load_acquire_sys_u64(queue.doorbell) != queue.seen)
            wake(queue.number);
        if (asleep_.empty())
            return;
    }
}

void sender::wake(std::uint32_t number) noexcept
{
    if (number > places_.size() || places_[number - 1].asleep == nowhere)
        return;
    std::uint32_t at = std::exchange(places_[number - 1].asleep, nowhere);
    asleep_[at] = asleep_.back();
    asleep_.pop_back();
    if (at < asleep_.size())
        places_[asleep_[at].number - 1].asleep = at;
    awake_.push_back({number, 0});
}

void sender::lay_down(std::size_t at) noexcept
{
    const std::uint32_t number = awake_[at].number;
    place& place = places_[number - 1];
    awake_[at] = awake_.back();
    awake_.pop_back();
    place.asleep = static_cast<std::uint32_t>(asleep_.size());
    asleep_.push_back({place.queue->ring().doorbell, place.queue->doorbell_seen(), number});
}

void sender::add(std::uint32_t number, tx_ring ring)
{
    reserve(number);
    ring.entries.queue = number;
    take_up(number, std::make_unique<tx_queue>(ring, wire_, keys_, pool_.make(ring.entries.depth)));
}

void sender::take_up(std::uint32_t number, std::unique_ptr<tx_queue> queue) noexcept
{
    queue->go_through(wire_);
    places_[number - 1] = {.queue = std::move(queue)};
    awake_.push_back({number, 0});
    if (port_lost_)
        this->queue(number).lose_port();
}

std::unique_ptr<tx_queue> sender::give_up(std::uint32_t number) noexcept
{
    wake(number);
    deadlines_.set(number, 0);
    std::erase_if(awake_, [&](const awake& each) { return each.number == number; });
    return std::move(places_[number - 1].queue);
}

void sender::reserve(std::uint32_t number)
{
    if (number > places_.size())
        places_.resize(number);
    awake_.reserve(places_.size()); // a queue that wakes or sleeps allocates nothing
    asleep_.reserve(places_.size());
    deadlines_.reserve(queues());
}

void sender::lose_port()
{
    port_lost_ = true;
    for (auto& place : places_)
        if (place.queue)
            place.queue->lose_port();
}

void sender::restart(std::uint32_t number, const tx_ring& ring) noexcept
{
    wake(number);
    deadlines_.set(number, 0);
    queue(number).restart(ring);
}

void sender::remove(std::uint32_t number)
{
    queue(number).stop();
    collect(number);
    const std::unique_ptr<tx_queue> gone = give_up(number);
    pool_.take(gone->take_headers(), gone->ring().entries.depth);
}

bool sender::drained(std::uint32_t number)
{
    collect(number);
    return queue(number).all_returned();
}

bool sender::settled(std::uint32_t number)
{
    collect(number);
    return queue(number).settled();
}

void sender::collect(std::uint32_t number)
{
    ask_driver();
    queue(number).collect();
}

bool sender::uses(const std::byte* begin, std::size_t bytes) const
{
    ask_driver();
    return pool_.uses(begin, bytes) || std::any_of(places_.begin(), places_.end(), [&](const auto& place) {
               return place.queue && place.queue->uses(begin, bytes);
           });
}

} // namespace weftio::nic
