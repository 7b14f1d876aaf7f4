#include "nic/soft/work/work_list.hpp"

#include <rte_pause.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"

namespace weftio::nic::soft {

void work_list::poll_for_work(bool busy) noexcept
{
    poll_doorbells(!busy);
    poll_commits(busy);
    const std::size_t most = busy ? polls_when_busy : polls_when_idle;
    for (std::size_t left = std::min(most, asleep_.size() + doorbells_.size()); left != 0; --left) {
        if (asleep_.empty() && asleep_at_doorbells_ == 0)
            return;
        last_polled_ = last_polled_ + 1 < asleep_.size() + doorbells_.size() ? last_polled_ + 1 : 0;
        if (last_polled_ < asleep_.size())
            poll_one(asleep_[last_polled_]);
        else
            poll_one(*doorbells_[last_polled_ - asleep_.size()]);
        count_poll();
    }
}

/// Finds commits without a push.
void work_list::poll_commits(bool busy) noexcept
{
    if (busy && ++busy_turns_ % busy_turns_per_commit_poll != 0)
        return;
    const std::size_t most = busy ? 1 : polls_when_idle;
    for (std::size_t left = std::min(most, at_bells_.size()); left != 0 && !at_bells_.empty(); --left) {
        last_commit_polled_ = last_commit_polled_ + 1 < at_bells_.size() ? last_commit_polled_ + 1 : 0;
        poll_one(at_bells_[last_commit_polled_]);
        count_poll();
    }
}

void work_list::poll_one(const asleep& queue) noexcept
{
    if (weftio_load_acquire_sys_u32(queue.word) != queue.seen)
        wake(queue.number);
}

/// Gives a sleeping queue one turn after each polls_per_wake polls: the queues in the order of their numbers, so that
/// none is passed over. It sleeps again if it finds no work.
void work_list::count_poll() noexcept
{
    if (++polls_ % polls_per_wake != 0)
        return;
    last_turned_ = last_turned_ + 1 < slots_.size() ? last_turned_ + 1 : 0;
    if (slots_[last_turned_].asleep == nowhere)
        return;
    wake(first_ + last_turned_);
    awake_.back().idle_turns = turns_awake - 1;
}

void work_list::poll_doorbells(bool all) noexcept
{
    bells_.poll(all, [this](std::uint32_t slot) { wake(slot + first_); });
}

/// A word may be rung for a queue that is awake. Such a queue reads its record once more before it sleeps.
void work_list::poll_one(const shared_doorbell& at) noexcept
{
    if (at.sleepers.empty())
        return;
    bool rung = false;
    for (std::uint64_t* const each : at.words.at)
        if (each != nullptr && take_ring(*each))
            rung = true;
    if (!rung)
        return;
    for (std::size_t left = at.sleepers.size(); left-- > 0;) // wake() moves the last one here
        poll_one(at.sleepers[left]);
}

void work_list::keep_deadlines(bool busy) noexcept
{
    if (deadlines_.empty())
        return;
    auto& clock = core::utc_clock::instance();
    // This reading may be a little early, never late: nothing leaves before its deadline.
    std::uint64_t now_ns = clock.stamp_ns();
    spin_.turn_began(now_ns);
    if (now_ns < deadlines_.first_ns() && spin_.begins(deadlines_.first_ns(), now_ns, busy)) {
        for (; now_ns < deadlines_.first_ns(); now_ns = clock.now_ns())
            rte_pause();
        spin_.ended(now_ns);
    }
    const std::size_t before = awake_.size();
    while (!deadlines_.empty() && deadlines_.first_ns() <= now_ns) {
        const std::uint32_t number = first_due();
        set_deadline(number, 0);
        slot_of(number).queue->let_go();
        wake(number);
    }
    // turn() begins at the end of awake_, so the earliest deadline must be last.
    std::reverse(awake_.begin() + static_cast<std::ptrdiff_t>(before), awake_.end());
}

void work_list::wake_those_due() noexcept
{
    if (deadlines_.empty())
        return;
    for (const std::uint64_t now_ns = core::utc_stamp_ns(); !deadlines_.empty() && deadlines_.first_ns() <= now_ns;) {
        const std::uint32_t number = first_due();
        set_deadline(number, 0);
        wake(number);
    }
}

work_list::outcome work_list::turn(std::uint32_t most)
{
    outcome all;
    for (std::size_t at = awake_.size(); at-- > 0;) {
        const std::uint32_t number = awake_[at].number;
        const slot& slot = slot_of(number);
        const unsigned moved = slot.queue->turn(slot.paused ? 0 : most);
        const std::uint64_t deadline_ns = slot.queue->deadline_ns();
        if (deadline_ns != 0 || !deadlines_.empty())
            set_deadline(number, deadline_ns);
        all.moved += moved;
        all.waits_for_others = all.waits_for_others || slot.queue->waits_for_others();
        if (rests(awake_[at], moved, deadline_ns != 0))
            lay_down(at);
    }
    change_first();
    return all;
}

/// Any queue may have the first turn next time: the first takes what all compete for, such as the receives of a peer.
/// Drawn, because a fixed order may keep step with who provides those.
void work_list::change_first() noexcept
{
    if (awake_.size() < 2)
        return;
    draw_ = draw_ * 1664525 + 1013904223; // Numerical Recipes, 7.1; the high bits are the random ones
    std::swap(awake_.back(), awake_[std::uint64_t{draw_} * awake_.size() >> 32]);
}

void work_list::wake_those_that_wait() noexcept
{
    for (std::uint32_t number = first(); number <= last(); ++number)
        if (slot_of(number).asleep != nowhere && slot_of(number).queue->deadline_ns() != 0)
            wake(number);
}

/// Whether a queue needs no turn before its doorbell is rung or its deadline comes. Called after its turn.
bool work_list::rests(awake& each, unsigned moved, bool has_deadline) noexcept
{
    const turn_taker& queue = *slot_of(each.number).queue;
    each.idle_turns = moved == 0 && (queue.idle() || queue.is_held()) ? each.idle_turns + 1 : 0;
    return each.idle_turns == turns_awake || (has_deadline && queue.only_waits());
}

void work_list::wake(std::uint32_t number) noexcept
{
    if (!has_slot(number) || slot_of(number).asleep == nowhere)
        return;
    slot& slot = slot_of(number);
    const std::uint32_t at = std::exchange(slot.asleep, nowhere);
    std::vector<asleep>& those = sleepers_with(slot);
    asleep_at_doorbells_ -= slot.at_doorbell;
    slot.at_doorbell = false;
    unwatch(number, slot);
    those[at] = those.back();
    those.pop_back();
    if (at < those.size())
        slot_of(those[at].number).asleep = at;
    awake_.push_back({number, 0});
}

/// The list that a sleeping queue is in.
std::vector<work_list::asleep>& work_list::sleepers_with(const slot& of) noexcept
{
    if (of.at_doorbell)
        return of.rung_by->sleepers;
    return of.watched ? at_bells_ : asleep_;
}

void work_list::watch(std::uint32_t number, slot& of, const watched_word& record) noexcept
{
    bells_.watch(number - first_, of.bell, record);
    of.watched = true;
}

void work_list::unwatch(std::uint32_t number, slot& of) noexcept
{
    if (std::exchange(of.watched, false))
        bells_.unwatch(number - first_, of.bell);
}

void work_list::lay_down(std::size_t at) noexcept
{
    const std::uint32_t number = awake_[at].number;
    slot& slot = slot_of(number);
    slot.queue->fall_asleep();
    const auto [word, seen] = slot.queue->wakes_by();
    const bool by_bell = word == slot.queue->ring().dbrec && !slot.queue->waits_for_time();
    const bool by_doorbell = by_bell && slot.rung_by != nullptr;
    if (by_bell && slot.bell)
        watch(number, slot, {word, seen});
    if (by_bell &&
        weftio_load_acquire_sys_u32(word) != seen) { // its ring may have been taken for others, or before watch()
        unwatch(number, slot);
        awake_[at].idle_turns = 0;
        return;
    }
    awake_[at] = awake_.back();
    awake_.pop_back();
    slot.at_doorbell = by_doorbell;
    asleep_at_doorbells_ += by_doorbell;
    std::vector<asleep>& those = sleepers_with(slot);
    slot.asleep = static_cast<std::uint32_t>(those.size());
    those.push_back({word, seen, number});
}

work_list::shared_doorbell& work_list::doorbell_at(const doorbell_words& words)
{
    const auto found = std::ranges::find_if(doorbells_, [&](const auto& each) { return each->words == words; });
    if (found != doorbells_.end())
        return **found;
    return *doorbells_.emplace_back(std::make_unique<shared_doorbell>(shared_doorbell{.words = words}));
}

void work_list::leave_doorbell(slot& of) noexcept
{
    shared_doorbell* const left = std::exchange(of.rung_by, nullptr);
    if (left != nullptr && --left->queues == 0)
        std::erase_if(doorbells_, [&](const auto& each) { return each.get() == left; });
}

void work_list::reserve(std::uint32_t number, const tx_ring& ring)
{
    if (!has_slot(number))
        slots_.resize(number - first_ + 1);
    awake_.reserve(slots_.size()); // so that queues wake and sleep without allocating
    asleep_.reserve(slots_.size());
    at_bells_.reserve(slots_.size());
    deadlines_.reserve(queues());
    bells_.reserve(number - first_, ring.bell);
    slot_of(number).bell = ring.bell;
    if (!ring.doorbell)
        return;
    leave_doorbell(slot_of(number)); // reserved before for a queue that was never put
    shared_doorbell& rings = doorbell_at(ring.doorbell);
    slot_of(number).rung_by = &rings;
    rings.sleepers.reserve(++rings.queues);
}

void work_list::put(std::uint32_t number, std::unique_ptr<turn_taker> queue) noexcept
{
    slot& slot = slot_of(number);
    slot.queue = std::move(queue);
    slot.asleep = nowhere;
    slot.at_doorbell = slot.paused = false;
    bells_.add(slot.bell);
    awake_.push_back({number, 0});
}

std::unique_ptr<turn_taker> work_list::take(std::uint32_t number) noexcept
{
    rouse(number);
    std::erase_if(awake_, [&](const awake& each) { return each.number == number; });
    leave_doorbell(slot_of(number));
    bells_.remove(std::exchange(slot_of(number).bell, {}));
    return std::move(slot_of(number).queue);
}

void work_list::rouse(std::uint32_t number) noexcept
{
    wake(number);
    set_deadline(number, 0);
}

} // namespace weftio::nic::soft
