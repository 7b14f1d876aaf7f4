#include "nic/soft/work/work_list.hpp"

#include <rte_pause.h>

#include <algorithm>
#include <utility>

#include "core/clock.hpp"

namespace weftio::nic::soft {

void work_list::look_at_records(bool busy) noexcept
{
    if (asleep_.empty())
        return;
    const std::size_t most = busy ? looks_of_a_busy_turn : looks_of_an_idle_turn;
    for (std::size_t left = std::min(most, asleep_.size()); left != 0; --left) {
        looked_ = looked_ + 1 < asleep_.size() ? looked_ + 1 : 0;
        const asleep& queue = asleep_[looked_];
        const bool sweep = ++looks_ % looks_to_a_turn == 0;
        if (weftio_load_acquire_sys_u32(queue.word) != queue.seen)
            wake(queue.number);
        else if (sweep) {
            wake(queue.number);
            awake_.back().idle_turns = turns_awake - 1; // for one turn, if that finds no work
        }
        if (asleep_.empty())
            return;
    }
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
        place_of(number).queue->let_go();
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

inline work_list::had_turn work_list::turn_of(std::uint32_t number, std::uint32_t most)
{
    const place& place = place_of(number);
    const unsigned moved = place.queue->turn(place.paused ? 0 : most);
    const std::uint64_t deadline_ns = place.queue->deadline_ns();
    if (deadline_ns != 0 || !deadlines_.empty())
        set_deadline(number, deadline_ns);
    return {moved, deadline_ns != 0};
}

work_list::outcome work_list::turn(std::uint32_t most)
{
    outcome all;
    for (std::size_t at = awake_.size(); at-- > 0;) {
        const std::uint32_t number = awake_[at].number;
        work_queue& queue = *place_of(number).queue;
        const had_turn had = turn_of(number, most);
        all.moved += had.moved;
        all.waits_for_others = all.waits_for_others || queue.waits_for_others();
        if (rests(awake_[at], had.moved, had.has_deadline))
            lay_down(at);
        else if (defers_ && queue.is_deferrable())
            put_off(at);
    }
    return all;
}

void work_list::defer(bool wanted) noexcept
{
    defers_ = wanted;
    while (!wanted && in_line_ != 0)
        recall(first_in_line());
}

void work_list::recall(std::uint32_t number) noexcept
{
    if (!has_place(number) || !std::exchange(place_of(number).deferred, false))
        return;
    --deferred_;
    awake_.push_back({number, 0});
}

unsigned work_list::turn_deferred(std::uint32_t most)
{
    while (in_line_ != 0) {
        const std::uint32_t number = first_in_line();
        place& place = place_of(number);
        if (!place.deferred)
            continue;
        place.deferred = false; // while it has its turn, others may wake it
        --deferred_;
        const unsigned moved = turn_of(number, most).moved;
        if (place.queue->is_deferrable())
            line_up(number);
        else
            awake_.push_back({number, 0});
        return moved;
    }
    return 0;
}

void work_list::line_up(std::uint32_t number) noexcept
{
    place& place = place_of(number);
    place.deferred = true;
    ++deferred_;
    if (!std::exchange(place.listed, true))
        line_[(line_begin_ + in_line_++) % line_.size()] = number;
}

/// Takes it out of the line. @pre there is one
std::uint32_t work_list::first_in_line() noexcept
{
    const std::uint32_t number = line_[line_begin_];
    line_begin_ = (line_begin_ + 1) % line_.size();
    --in_line_;
    place_of(number).listed = false;
    return number;
}

void work_list::put_off(std::size_t at) noexcept
{
    const std::uint32_t number = awake_[at].number;
    awake_[at] = awake_.back();
    awake_.pop_back();
    line_up(number);
}

void work_list::wake_those_that_wait() noexcept
{
    for (std::uint32_t number = first(); number <= last(); ++number)
        if (place_of(number).asleep != nowhere && place_of(number).queue->deadline_ns() != 0)
            wake(number);
}

/// Whether a queue needs no turn before its doorbell is rung or its deadline comes. Called after its turn.
bool work_list::rests(awake& each, unsigned moved, bool has_deadline) noexcept
{
    const work_queue& queue = *place_of(each.number).queue;
    each.idle_turns = moved == 0 && (queue.idle() || queue.is_held()) ? each.idle_turns + 1 : 0;
    return each.idle_turns == turns_awake || (has_deadline && queue.only_waits());
}

void work_list::wake(std::uint32_t number) noexcept
{
    if (!has_place(number) || place_of(number).asleep == nowhere)
        return;
    std::uint32_t at = std::exchange(place_of(number).asleep, nowhere);
    asleep_[at] = asleep_.back();
    asleep_.pop_back();
    if (at < asleep_.size())
        place_of(asleep_[at].number).asleep = at;
    awake_.push_back({number, 0});
}

void work_list::lay_down(std::size_t at) noexcept
{
    const std::uint32_t number = awake_[at].number;
    place& place = place_of(number);
    awake_[at] = awake_.back();
    awake_.pop_back();
    place.asleep = static_cast<std::uint32_t>(asleep_.size());
    place.queue->fall_asleep();
    const auto [word, seen] = place.queue->wakes_by();
    asleep_.push_back({word, seen, number});
}

void work_list::reserve(std::uint32_t number)
{
    if (!has_place(number))
        places_.resize(number - first_ + 1);
    awake_.reserve(places_.size()); // so that queues wake and sleep without allocating
    asleep_.reserve(places_.size());
    std::rotate(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(line_begin_), line_.end());
    line_begin_ = 0;
    line_.resize(places_.size());
    deadlines_.reserve(queues());
}

void work_list::put(std::uint32_t number, std::unique_ptr<work_queue> queue) noexcept
{
    place_of(number) = {.queue = std::move(queue), .listed = place_of(number).listed};
    awake_.push_back({number, 0});
}

std::unique_ptr<work_queue> work_list::take(std::uint32_t number) noexcept
{
    rouse(number);
    std::erase_if(awake_, [&](const awake& each) { return each.number == number; });
    return std::move(place_of(number).queue);
}

void work_list::rouse(std::uint32_t number) noexcept
{
    wake(number);
    recall(number);
    set_deadline(number, 0);
}

} // namespace weftio::nic::soft
